//! How long the addresses of a prompt may be: they are remembered and replayed whole, and the model is
//! told of them. Pure.

use alloc::format;
use alloc::string::String;

use crate::limits::Limits;
use crate::protocol::schema::{ContentBlock, EmbeddedResourceResource};

/// Whether the addresses of a prompt can be used. The error names the block whose is too long.
pub(super) fn check(blocks: &[ContentBlock], limits: &Limits) -> Result<(), String> {
    let most = limits.max_link;
    for (n, block) in blocks.iter().enumerate() {
        let (kind, what, long) = match block {
            ContentBlock::Text(_) | ContentBlock::Audio(_) => continue,
            ContentBlock::Image(it) => ("image", "its uri", it.uri.as_ref().map_or(0, String::len)),
            // All that it says, since all of it is only about something else.
            ContentBlock::ResourceLink(_) => {
                let json = serde_json::to_string(block).unwrap_or_default();
                ("resource_link", "it", json.len())
            }
            ContentBlock::Resource(it) => {
                let uri = match &it.resource {
                    EmbeddedResourceResource::Text(it) => &it.uri,
                    EmbeddedResourceResource::Blob(it) => &it.uri,
                };
                ("resource", "its uri", uri.len())
            }
        };
        if long > most {
            return Err(format!(
                "block {n} ({kind}): {what} has {long} bytes, at most {most} are taken"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::schema::{
        BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink, TextResourceContents,
    };
    use alloc::vec::Vec;

    #[test]
    fn an_address_that_is_too_long_is_refused_by_its_block() {
        let limits = Limits::default();
        let resource = |it| ContentBlock::Resource(EmbeddedResource::new(it));
        let image = |uri: String| {
            let mut image = ImageContent::new("", "image/png");
            image.uri = Some(uri);
            ContentBlock::Image(image)
        };
        let described = |text: String| {
            let mut link = ResourceLink::new("n", "file:///x");
            link.description = Some(text);
            ContentBlock::ResourceLink(link)
        };
        type Make<'a> = &'a dyn Fn(String) -> ContentBlock;
        let kinds: [(&str, usize, Make<'_>); 6] = [
            ("(image): its uri", 0, &image),
            ("(resource): its uri", 0, &|uri| {
                resource(EmbeddedResourceResource::Text(TextResourceContents::new(
                    "t", uri,
                )))
            }),
            ("(resource): its uri", 0, &|uri| {
                resource(EmbeddedResourceResource::Blob(BlobResourceContents::new(
                    "", uri,
                )))
            }),
            ("(resource_link): it has", 1000, &|uri| {
                ContentBlock::ResourceLink(ResourceLink::new("n", uri))
            }),
            ("(resource_link): it has", 1000, &|name| {
                ContentBlock::ResourceLink(ResourceLink::new(name, "file:///x"))
            }),
            ("(resource_link): it has", 1000, &described),
        ];
        for (why, beside, make) in kinds {
            let blocks = |long| Vec::from([ContentBlock::text("see"), make("x".repeat(long))]);
            let most = limits.max_link;
            assert_eq!(check(&blocks(most - beside), &limits), Ok(()), "{why}");
            let refused = check(&blocks(most + 1), &limits).expect_err(why);
            let named = format!("block 1 {why}");
            assert!(refused.starts_with(&named), "{refused}");
            assert!(!refused.contains("xxx"), "input is not quoted");
        }
    }
}
