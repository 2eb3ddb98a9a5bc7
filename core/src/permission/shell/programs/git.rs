//! git and its like: the flags of each verb that choose among what is in the repository.

use super::How::{Flags, Verbs};
use super::Operands::{Any, No, OneOf, Places, Remotes};
use super::{Behind, Program, program, verb};

/// What is shown of history and changes, and how.
const SHOW: &str = "-p -u -s -U= -n= -# -i -E -F -P -G== -S== -L== -w -b -M -C -B -D -R -a -z -q -c -m -t -r -l= \
    -X --oneline --graph --all --branches --tags --remotes --decorate --no-decorate --stat --shortstat \
    --numstat --dirstat --summary --compact-summary --name-only --name-status --patch --no-patch --follow \
    --reverse --merges --no-merges --first-parent --since== --after== --until== --before== --author== \
    --committer== --grep== --invert-grep --all-match --regexp-ignore-case --fixed-strings \
    --extended-regexp --perl-regexp --pickaxe-all --pickaxe-regex --format --pretty --abbrev-commit \
    --no-abbrev-commit --abbrev --date= --relative-date --color --no-color --cached --staged \
    --word-diff --word-diff-regex== --color-words --ignore-all-space --ignore-space-change \
    --ignore-space-at-eol --ignore-blank-lines --ignore-cr-at-eol --text --binary --raw --full-index \
    --diff-filter= --relative --no-relative --exit-code --quiet --check --minimal --patience \
    --histogram --diff-algorithm= --diff-merges= --cc --find-renames --find-copies --no-renames \
    --no-ext-diff --no-textconv --function-context --unified= --inter-hunk-context= --max-count= \
    --skip= --topo-order --date-order --author-date-order --left-right --cherry-pick --cherry-mark \
    --cherry --simplify-by-decoration --full-history --ancestry-path --source --show-signature --notes \
    --no-notes --boundary --walk-reflogs --merge-base --submodule --src-prefix= --dst-prefix= --no-prefix \
    --children --parents --count --objects --no-walk --stdin \
    !--ext-diff !--textconv ~--output= ~--no-index ~-O=";

const OF: Behind = Behind::Operands;

pub(super) static TABLE: &[Program] = &[
    program(
        &["git"],
        Verbs(&[
            "bisect", "config", "difftool", "filter-branch", "filter-repo", "hook", "mergetool", "submodule",
            "send-email", "maintenance", "daemon", "for-each-repo", "rebase",
        ]),
    )
    .flags(&["-v -P -p --version --help --no-pager --paginate --no-replace-objects --literal-pathspecs \
        --no-optional-locks --glob-pathspecs --html-path --man-path --info-path \
        !-c== !--config-env== !--exec-path== !--super-prefix== ~-C== ~--git-dir== ~--work-tree== ~--namespace== ~--bare"])
    .signs(&["ext::"])
    .verbs(&[
        verb("log show whatchanged shortlog", &[SHOW, "-e"], Any, OF),
        verb("diff diff-tree diff-index diff-files range-diff", &[SHOW, "-1 -2 -3 --base --ours --theirs"], Any, OF),
        verb("rev-list reflog", &[SHOW, "--expire= --dry-run"], Any, OF),
        verb("rev-parse", &["-q --verify --short --abbrev-ref --symbolic --symbolic-full-name --show-toplevel \
            --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree \
            --is-bare-repository --all --branches --tags --remotes --quiet --revs-only --no-revs --default="], Any, OF),
        verb("status", &["-s -b -v -u -z --short --branch --porcelain --long --verbose --show-stash --ignored \
            --untracked-files --ahead-behind --no-ahead-behind --renames --no-renames --column --no-column"], Any, OF),
        verb("blame annotate", &["-w -M -C -L== -e -s -l -t -n -f -p -c -b --date= --since== --porcelain --line-porcelain --root \
            --show-email --show-name --show-number --reverse --first-parent --ignore-rev= --color-lines --color-by-age"], Any, OF),
        verb("grep", &["-i -n -l -L -c -w -v -h -H -E -F -G -P -e== -o -p -W -q -z -a -I -r -A= -B= -C= -m= -# --cached --untracked \
            --no-index --name-only --files-with-matches --files-without-match --count --line-number --column \
            --ignore-case --word-regexp --invert-match --extended-regexp --fixed-strings --perl-regexp --and \
            --or --not --all-match --show-function --function-context --heading --break --max-depth= --color --no-color \
            --recurse-submodules --only-matching --context= --threads= !-O !--open-files-in-pager !--ext-grep !--textconv"], Any, OF),
        verb("ls-files ls-tree", &["-c -d -m -o -i -s -u -r -t -z -l -k -x== --cached --deleted --modified --others --ignored --stage \
            --name-only --name-status --full-name --full-tree --exclude-standard --error-unmatch --directory --long \
            --abbrev --format== --with-tree= --unmerged --killed --eol --deduplicate --exclude=="], Any, OF),
        verb("describe name-rev merge-base cherry", &["-a -v --all --tags --long --always --dirty --broken --contains --abbrev \
            --match== --exclude== --first-parent --candidates= --exact-match --is-ancestor --fork-point --octopus --name-only"], Any, OF),
        verb("cat-file", &["-t -s -e -p --batch --batch-check"], Any, OF),
        verb("for-each-ref show-ref symbolic-ref", &["-d -q -s --format== --sort= --count= --points-at= --merged --no-merged \
            --contains --heads --branches --tags --hash --abbrev --verify --quiet --short"], Any, OF),
        verb("count-objects check-ignore check-attr verify-commit verify-tag var", &["-v -H -q -z -n -a --verbose --non-matching --no-index"], Any, OF),
        verb("add stage", &["-A -u -v -n -f -p -N --all --update --verbose --dry-run --force --patch --intent-to-add --refresh \
            --renormalize --chmod= --ignore-errors --no-all --ignore-removal --sparse"], Any, OF),
        verb("rm mv", &["-r -f -n -q -k -v --cached --force --dry-run --quiet --ignore-unmatch --verbose"], Any, OF),
        verb("commit", &["-m== -a -s -v -q -n -F= -C= -p -o -i -u --message== --all --amend --no-edit --signoff --no-signoff --verbose --quiet \
            --no-verify --verify --allow-empty --allow-empty-message --author== --date== --fixup= --squash= --dry-run \
            --reset-author --file= --reuse-message= --short --branch --porcelain --patch --only --include --trailer== \
            --cleanup= --no-gpg-sign --no-post-rewrite --status --no-status"], Any, OF),
        verb("branch", &["-a -r -v -d -D -m -M -c -C -f -l -q -t -i -u= --all --remotes --verbose --delete --move --copy --force --list --quiet \
            --show-current --merged --no-merged --contains --no-contains --points-at= --sort= --format== \
            --set-upstream-to= --unset-upstream --track --no-track --color --no-color --column --no-column --abbrev"], Any, OF),
        verb("tag", &["-a -d -f -l -n -m== -F= -v -i -s --annotate --delete --force --list --message== --file= --verify --contains \
            --no-contains --merged --no-merged --points-at= --sort= --format== --sign --no-sign --column --no-column"], Any, OF),
        verb("checkout switch restore", &["-b= -B= -c= -C= -f -q -t -d -p -m -l -s= -S -W --quiet --force --track --no-track --detach --ours --theirs \
            --orphan= --create= --force-create= --guess --no-guess --patch --merge --conflict= --source= --staged --worktree \
            --ignore-unmerged --overlay --no-overlay --progress --discard-changes --ignore-other-worktrees"], Any, OF),
        verb("stash", &[SHOW, "-m== -k --message== --include-untracked --keep-index --no-keep-index --only-untracked \
            --index --staged"], Any, OF),
        verb("merge cherry-pick revert", &["-m== -n -x -q -v -X= -S --message== --no-ff --ff --ff-only --squash --no-squash --commit \
            --no-commit --no-edit --abort --continue --skip --quit --quiet --verbose --stat --no-stat --log --no-log \
            --strategy-option= --signoff --allow-empty --allow-unrelated-histories --mainline= --no-verify --verify \
            --autostash --no-autostash --keep-redundant-commits --into-name= --no-rerere-autoupdate --no-gpg-sign \
            !-s= !--strategy="], Any, OF),
        verb("rebase", &["-q -v -n -f -r -X= --onto= --abort --continue --skip --quit --autostash --no-autostash --autosquash \
            --no-autosquash --keep-base --root --update-refs --no-update-refs --quiet --verbose --stat --no-stat \
            --no-verify --verify --fork-point --no-fork-point --strategy-option= --empty= --show-current-patch \
            --force-rebase --no-ff --rebase-merges --signoff --committer-date-is-author-date --reset-author-date \
            --ignore-whitespace --apply --merge --edit-todo !-x== !--exec== !-i !--interactive !-s= !--strategy="], Any, OF),
        verb("reset", &["-q -p -N --soft --mixed --hard --merge --keep --quiet --patch --intent-to-add"], Any, OF),
        verb("clean", &["-f -d -x -X -n -q -e== --force --dry-run --quiet --exclude=="], Any, OF),
        verb("fetch pull", &["-a -p -P -t -n -f -q -v -k -u -4 -6 -j= -r -X= --all --append --prune --prune-tags --tags --no-tags --force --quiet --verbose \
            --keep --depth= --deepen= --unshallow --shallow-since= --dry-run --progress --no-progress --jobs= --set-upstream \
            --multiple --atomic --update-shallow --refetch --recurse-submodules --no-recurse-submodules --rebase --no-rebase --ff \
            --ff-only --no-ff --no-commit --commit --squash --no-squash --no-edit --autostash --no-autostash --stat --no-stat \
            --strategy-option= --allow-unrelated-histories --no-verify --verify --ipv4 --ipv6 --prefetch --no-write-fetch-head \
            !--upload-pack== !-s= !--strategy= ~-o=="], Remotes, OF),
        verb("push", &["-u -f -n -q -v -d -4 -6 --set-upstream --force --force-with-lease --force-if-includes --dry-run --quiet --verbose --all \
            --branches --mirror --tags --follow-tags --delete --prune --atomic --progress --no-progress --porcelain --no-verify \
            --verify --thin --no-thin --signed --no-signed --ipv4 --ipv6 --recurse-submodules --no-recurse-submodules \
            !--receive-pack== !--exec== ~-o== ~--push-option== ~--repo="], Remotes, OF),
        verb("ls-remote", &["-h -t -q --heads --branches --tags --refs --quiet --exit-code --symref --get-url --sort= \
            !--upload-pack== !--exec== ~-o=="], Remotes, OF),
        verb("clone", &["-q -v -n -s -l -j= -b= --quiet --verbose --depth= --branch= --single-branch --no-single-branch --no-tags --no-checkout \
            --bare --mirror --recurse-submodules --shallow-submodules --progress --filter== --sparse --jobs= --no-hardlinks \
            --shallow-since= --origin= \
            !-u== !--upload-pack== !-c== !--config== !--template= ~-o= ~--reference= ~--separate-git-dir= ~--bundle-uri="], Remotes, OF),
        verb("remote", &["-v -f -t= -m= -n -p --verbose --tags --no-tags --push --all --add --delete --prune --dry-run --auto"], Remotes, OF),
        verb("worktree", &["-b= -B= -f -d -v -n --detach --force --checkout --no-checkout --lock --reason== --verbose --porcelain --dry-run \
            --track --no-track --guess-remote --orphan --expire="], Places, OF),
        verb("init", &["-q -b= --quiet --bare --initial-branch= --object-format= --shared !--template= ~--separate-git-dir="], Places, OF),
        verb("apply", &["-p= -# -R -3 -C= -v -q -z --check --stat --numstat --summary --index --cached --intent-to-add --3way --reverse --reject \
            --recount --whitespace= --ignore-whitespace --ignore-space-change --exclude== --include== --verbose --allow-empty \
            ~--unsafe-paths ~--directory="], Places, OF),
        verb("am", &["-3 -q -s -k -n --3way --quiet --signoff --abort --continue --skip --quit --keep --no-verify --show-current-patch --ignore-whitespace \
            -p= -C= --whitespace= --reject ~--directory="], Places, OF),
        verb("format-patch", &[SHOW, "-k -N -v= --stdout --cover-letter --subject-prefix= --numbered --no-numbered --signoff --zero-commit --base= \
            --start-number= --thread --in-reply-to= --to= --cc= --reroll-count= !--signature-file= ~-o= ~--output-directory="], Any, OF),
        verb("archive", &["-l -v -# --format=: --prefix= --list --verbose --worktree-attributes !--exec== ~-o= ~--output= ~--remote= ~--add-file="], Any, OF),
        verb("config", &["-l -z --list --get== --get-all== --get-regexp== --show-origin --show-scope --name-only --null --local --global --system \
            --type= --bool --int --default== !-e !--edit ~-f= ~--file= ~--blob= ~--add ~--replace-all ~--unset"],
            OneOf(&["get", "list"]), OF),
        verb("submodule", &["-q --quiet --cached --init --recursive --depth= --jobs= --recommend-shallow --single-branch"],
            OneOf(&["status", "init", "sync", "summary"]), OF),
        verb("bisect", &["--term-good --term-bad --no-checkout --first-parent"],
            OneOf(&["start", "good", "bad", "new", "old", "skip", "reset", "log", "terms", "next"]), OF),
        verb("notes", &["-m== -f --ref= --force"], Any, OF),
        verb("gc prune fsck pack-refs repack", &["-a -d -f -q -n -v -l --auto --aggressive --prune --no-prune --quiet --full --strict --all --dry-run \
            --connectivity-only --unreachable --lost-found --dangling --no-dangling"], Any, OF),
        verb("sparse-checkout", &["--cone --no-cone"], OneOf(&["init", "list", "set", "add", "disable", "reapply"]), OF),
        verb("lfs", &["-l -a --all --name-only"], OneOf(&["ls-files", "status", "pull", "fetch", "track", "untrack", "env", "version"]), OF),
        verb("difftool mergetool filter-branch filter-repo send-email daemon instaweb hook for-each-repo maintenance svn p4 \
            shell receive-pack upload-pack fast-import bundle replace cvsserver imap-send gui credential", &["-q -v --quiet --verbose"], No, OF),
        verb("version help", &["-a --all --build-options"], No, OF),
    ]),
    program(&["hg"], Flags)
        .flags(&["-q -v -y --version !--config== !--config-file= !--debugger ~-R= ~--cwd= ~--repository="])
        .verbs(&[verb(
            "status st log diff summary identify id heads branch branches tags annotate blame files cat parents paths \
             commit ci add remove rename update up pull push revert",
            &["-r= -v -q -p -l= -m== -a -A -g -n -u -c -b -i -d -f -C --rev= --stat --git --all --limit= --message== --user= --date= --style=: \
               --graph -G !--config== !--tool= !-t= !--config-file= !--ssh== !-e== !--remotecmd== ~-R= ~--cwd= ~-T=="],
            Remotes,
            OF,
        )]),
    program(&["svn"], Flags)
        .flags(&["-q --version --quiet !--config-option== !--config-dir= !--diff-cmd== !--diff3-cmd=="])
        .verbs(&[verb(
            "status stat st log diff di info update up list ls cat blame commit ci add revert resolved proplist propget cleanup",
            &["-r= -q -v -u -m== -l= -c= -g -R --revision= --quiet --verbose --limit= --message== --stop-on-copy --summarize \
               --non-interactive --depth= !--config-option== !--config-dir= !--diff-cmd== !--diff3-cmd== !--editor-cmd== !-x=="],
            Places,
            OF,
        )]),
    program(&["jj"], Flags)
        .flags(&["--version --no-pager --ignore-working-copy !--config== !--config-toml== !--config-file= ~-R= ~--repository="])
        .verbs(&[verb(
            "status st log show diff new commit ci describe desc edit abandon squash bookmark b op undo evolog interdiff file",
            &["-r= -m== -n= -p -s -T== -B= -A= -f= -t= --stat --git --summary --no-graph --limit= --message== --revisions= --from= --to= \
               --reversed --no-pager --color=: --no-edit -G -u !--config== !--config-toml== !--config-file= !--tool== ~-R="],
            Any,
            OF,
        )]),
    program(&["gh", "glab"], Flags)
        .flags(&["--version --help"])
        .verbs(&[verb(
            "pr issue run repo workflow status search label",
            &["-R= -s= -L= -l= -a= -A= -B= -H= -S== -t== -b== -m= -d -w -c --repo= --state= --limit= --label= --author= --assignee= \
               --search== --json= --jq== --title== --body== --base= --head= --draft --fill --web --comments --log --log-failed \
               --patch --name-only --exit-status -q== --watch"],
            OneOf(&["list", "view", "status", "diff", "checks", "create", "comment", "edit", "watch", "close", "reopen", "ready", "prs", "issues"]),
            OF,
        )]),
];
