//! Interpreters, and languages that come in a word.

use super::How::{Code, Flags, Verbs};
use super::Operands::{Any, No, OwnScript, Places, Sed};
use super::{Behind, Program, program, verb};

/// Leave that deno gives to the project's own program.
const DENO: &str = "-A -q --quiet --allow-all --allow-read --allow-write --allow-net --allow-env \
    --allow-sys --no-check --check --no-lock --no-prompt --watch \
    !--import-map= !-c= !--config= !--preload= !--require= !--import= ~--cert= ~-L=";

/// Flags with which scripts of a project are run: they choose among what there is.
pub(super) const SCRIPT: &str = "-w -u -t -g -q -v -i -h --watch --watchAll --fix --write --check --coverage \
    --run --ci --verbose --silent --quiet --bail --updateSnapshot --update --grep== \
    --testNamePattern== --testPathPattern== --passWithNoTests --runInBand --maxWorkers= --no-cache \
    --cache --color --no-color --help --version --host=: --port= --mode=: --max-warnings= --ext= \
    --headless --debug --dev --prod --production --json --noEmit --shard= --retries= --workers= \
    --changed --related --project=: --reporter=: --no-coverage --noStackTrace --findRelatedTests";

pub(super) static TABLE: &[Program] = &[
    program(&["python", "pypy", "ipython"], Code).flags(&[
        "-B -u -O -I -s -E -S -b -v -q -P -V -h --version --help !-c== !-m== ~-W== ~-X== ~-i",
    ]),
    program(&["perl"], Code).flags(&["-w -c -v -V -T -t -W -X \
        !-e== !-E== !-M !-m !-d ~-I= ~-i ~-n ~-p ~-l ~-a ~-0 ~-x"]),
    program(&["ruby", "irb"], Code)
        .flags(&["-w -c -v -W --version !-e== !-r== ~-I= ~-C= ~-i ~-n ~-p ~-l ~-a ~-x ~-S"]),
    program(&["node", "nodejs", "tsx", "ts-node"], Code).flags(&[
        "-v --version --check --test --watch --enable-source-maps --trace-warnings --no-warnings \
         --test-name-pattern== --test-only --expose-gc --test-reporter=: --test-concurrency= --trace-deprecation \
         !-e== !-p== !-r== !-pe== !--eval== !--print== !--require== !--import== !--loader== \
         !--experimental-loader== !--env-file== ~-C= ~-i",
    ]),
    program(&["java"], Code).flags(&["- -version --version -ea -showversion -help !-jar== !-cp== !-classpath== !-m=="]),
    program(&["bun"], Verbs(&["x", "exec", "create", "repl"]))
        .flags(&["-v --version !-e== !-p== !-r== !--eval== !--print== !--preload== !--config= !-c= \
            ~--cwd= ~--env-file="])
        .verbs(&[
            verb("install i", &["--frozen-lockfile --production -p --no-save --dry-run -f --force --silent \
                --verbose --ignore-scripts !--config= !-c= ~--cwd="], super::Operands::Packages, Behind::Nothing),
            verb("add a", &["-d --dev -D -E --exact --optional !--config= !-c= ~--cwd="],
                super::Operands::Packages, Behind::Nothing),
            verb("test", &["--watch --coverage --bail --timeout= -t== --test-name-pattern== --only --todo \
                --rerun-each= --update-snapshots -u !--config= !-c= !--preload== !-r== ~--cwd="], Places, Behind::Nothing),
            verb("run", &[SCRIPT, "!--config= !-c= !--preload== !-r== !--shell= ~--cwd= ~--env-file="],
                Places, Behind::Flags(&[SCRIPT], Places)),
            verb("outdated pm", &["-a --all"], super::Operands::OneOf(&["ls", "list", "why", "hash"]), Behind::Nothing),
        ]),
    program(&["deno"], Verbs(&["eval", "task", "install", "upgrade"]))
        .flags(&["-V --version -q !--import-map= !-c= !--config= !--preload= !--require="])
        // A module of a registry, or of the web.
        .elsewhere(&["npm:", "jsr:", "data:", "node:", "://"])
        .verbs(&[
            verb("check", &[DENO, "--all --doc --doc-only"], Places, Behind::Nothing),
            verb("fmt", &["-q --quiet --check --watch --ignore= --line-width= --indent-width= --use-tabs \
                --no-semicolons --single-quote --prose-wrap=: !-c= !--config="], Places, Behind::Nothing),
            verb("lint", &["-q --quiet --fix --json --rules --watch --ignore= --compact !-c= !--config="], Places, Behind::Nothing),
            verb("test bench", &[DENO, "--filter== --parallel --fail-fast --doc --reporter=: --shuffle --coverage=/ \
                --trace-leaks --permit-no-files --no-run --ignore= --hide-stacktraces"], Places, Behind::Own),
            verb("run", &[DENO], OwnScript, Behind::Own),
            verb("info doc", &["--json -q"], Places, Behind::Nothing),
        ]),
    program(&["php"], Code).flags(&["-l -v -m -q --version \
        !-r== !-B== !-R== !-E== !-d== !-z== !-F== !--run== !--define== !--process-begin== !--process-code== \
        !--process-end== !--process-file== ~-c= ~-f= ~-S= ~-t="]),
    program(&["lua", "luajit", "texlua"], Code).flags(&["-v -W !-e== !-l== ~-i"]),
    program(&["Rscript", "R"], Code)
        .flags(&["--vanilla --no-save --quiet -q --version !-e== ~-f= ~--file="]),
    program(
        &["julia", "elixir", "groovy", "scala", "guile", "racket", "osascript", "tclsh", "erl", "ghc", "runghc", "swipl", "sbcl", "clojure"],
        Code,
    )
    .flags(&["--version !-e== !-E== !--eval== !-L== !-r== !-c== !-l== !--load== !--print== !-p== !-s== !-m=="]),
    program(&["awk", "gawk", "mawk", "nawk"], Flags)
        .flags(&[
            "-F== -v== --field-separator== --assign== --posix --traditional --version \
             !-f== !-e== !-E== !-i== !-l== !--file== !--source== !--include== !--load== !--exec==",
        ])
        .signs(&["system", "|", "@"])
        .elsewhere(&[">", "getline"])
        .operands(Any),
    program(&["sed", "gsed"], Flags)
        .flags(&["-n -E -r -s -u -z -l= --quiet --silent --regexp-extended --posix --debug --null-data \
            --sandbox !-f== !--file== ~-e== ~--expression== ~-i ~--in-place"])
        .operands(Sed),
    program(&["jq", "yq", "gojq"], Flags).flags(&[
        "-r -n -e -c -s -S -C -M -a -j -R -P -o= -p= --raw-output --null-input --exit-status --compact-output --slurp \
         --sort-keys --color-output --monochrome-output --arg --argjson --tab --indent= --join-output \
         --raw-input --ascii-output --args --jsonargs --stream !-f== !-L== !--from-file== ~-i",
    ]),
    program(&["vi", "vim", "nvim", "view", "ex", "ed", "emacs", "nano", "more"], Flags)
        .flags(&[
            "-R -n --version !-c== !-S== !-s== !-u== !-P== !--cmd== !--eval== !--load== !--batch !-l== !-H== \
             !-f== !-w== !-q= !-t= !-i= !-T= !--funcall== !--script==",
        ])
        .signs(&["!", "+"]),
    program(&["less"], Flags)
        .flags(&["-N -R -S -F -X -i -I -M -n -E !-P== !-k= !-K ~-o= ~-O= ~-t= ~-T= ~--log-file="])
        .signs(&["!", "+"]),
    program(&["man"], Flags)
        .flags(&["-k -f -a -w -K --apropos --whatis --all --where !-P== !-H== !-l= !-C= !-p== !--pager== !--html== \
            !--config-file= !--preprocessor== ~-M= ~--manpath="])
        .operands(Places)
        .signs(&["!", "+"]),
    program(&["gdb", "lldb"], Flags)
        .flags(&["--version !-x== !-ex== !-ix== !-iex== !-o== !-s== !-S== !--args !--command== \
            !--eval-command== !--init-command== !--source== !--one-line=="])
        .operands(No),
];
