//! How long what a prompt says beside its texts and bytes may be: addresses, notes of the client. It
//! is remembered and shown again whole, in one frame, and the model is told of addresses. Pure.

use alloc::format;
use alloc::string::String;

use super::content;
use crate::limits::Limits;
use crate::protocol::schema::ContentBlock;

/// Whether what the blocks of a prompt say can be kept. The error names the block that says too much.
pub(super) fn check(blocks: &[ContentBlock], limits: &Limits) -> Result<(), String> {
    let most = limits.max_link;
    for (n, block) in blocks.iter().enumerate() {
        let (kind, what) = match block {
            ContentBlock::Audio(_) => continue,
            ContentBlock::Text(_) => ("text", "what it says beside its text"),
            ContentBlock::Image(_) => ("image", "what it says beside its picture"),
            // All that it says, since all of it is only about something else.
            ContentBlock::ResourceLink(_) => ("resource_link", "it"),
            ContentBlock::Resource(_) => ("resource", "what it says beside its content"),
        };
        let beside = content::beside(block);
        let long = serde_json::to_string(&beside).unwrap_or_default().len();
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
        BlobResourceContents, EmbeddedResource, EmbeddedResourceResource, ImageContent,
        ResourceLink, TextResourceContents,
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
        let noted = |note: String| {
            let json = format!(r#"{{"type":"text","text":"a","_meta":{{"n":"{note}"}}}}"#);
            serde_json::from_str(&json).expect("a block")
        };
        let kinds: [(&str, usize, Make<'_>); 7] = [
            ("(text): what", 1000, &noted),
            ("(image): what", 1000, &image),
            ("(resource): what", 1000, &|uri| {
                resource(EmbeddedResourceResource::Text(TextResourceContents::new(
                    "t", uri,
                )))
            }),
            ("(resource): what", 1000, &|uri| {
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
