//! Builders, package managers and testers: what they are told about the project at hand.

use super::How::{Flags, Line, Targets, Verbs};
use super::Operands::{Any, No, OneOf, OwnScript, Packages, Places, Program as Then, Projects};
use super::code::SCRIPT;
use super::{Behind, Program, program, verb};

const NONE: Behind = Behind::Nothing;

/// What every verb of cargo refuses.
const CARGO: &str = "-v -q -h --verbose --quiet --color= --locked --offline --frozen --help \
    !--config== !-Z== ~-C== ~--manifest-path= ~--target-dir= ~--out-dir= ~--artifact-dir= ~--lockfile-path=";

/// Which part of the project cargo builds, and how.
const BUILD: &str = "-j= -p= -F= -r --jobs= --package= --workspace --all --exclude= --lib --bin= --bins --example= \
    --examples --test= --tests --bench= --benches --all-targets --features= --all-features \
    --no-default-features --release --profile=: --target=: --no-run --no-fail-fast --doc --keep-going \
    --message-format= --future-incompat-report --timings --ignore-rust-version --unit-graph";

/// The tester that is built into tests of Rust.
const LIBTEST: &str = "-q --nocapture --no-capture --show-output --exact --ignored --include-ignored --list --skip= \
    --test-threads= --test --bench --format=: --color=: --quiet --shuffle --shuffle-seed= --report-time \
    --exclude-should-panic --sample-size= --warm-up-time= --measurement-time= --save-baseline=: --baseline=: --noplot";

const LINTS: &str = "-D= -W= -A= -F= --deny= --warn= --allow= --forbid= --cap-lints=:";

/// How go builds.
const GO: &str = "- -v -x -n -a -race -msan -asan -cover -covermode= -coverpkg= -tags= -trimpath -p= -mod=: -json \
    -buildvcs= -work !-exec== !-toolexec== !-vettool== !-overlay= !-ldflags== !-gcflags== !-asmflags== !-gccgoflags== \
    !-compiler= !-modfile= !-pkgdir= ~-C== ~-o= ~-modcacherw";

const NPM: &str = "- -s -q -ws -w= -D -S -E -P -O -f -l -L --silent --loglevel= --json --no-color --color --workspaces --workspace= \
    --if-present --ignore-scripts --no-audit --no-fund --prefer-offline --offline --include= --omit= \
    --production --save-dev --save --save-exact --no-save --save-optional --save-peer --legacy-peer-deps \
    --force --dry-run --package-lock-only --audit-level= --depth= --all --long --no-package-lock \
    --engine-strict --include-workspace-root --frozen-lockfile --no-frozen-lockfile --lockfile-only --prod --dev --no-optional \
    --filter= -r --recursive --parallel --stream --aggregate-output --immutable --immutable-cache --non-interactive \
    --prefer-frozen-lockfile --strict-peer-dependencies --workspace-root --verbose --exact --tilde \
    !--script-shell= !--shell= !--node-options= !--userconfig= !--globalconfig= !--git= !--node-gyp= !--call== !-c== \
    ~-C= ~--prefix= ~--cwd= ~--dir= ~-g ~--global ~--registry= ~--location= ~--cache=";

const PYTHON: &str = "-q -v -n -U -E= --quiet --verbose --all-extras --extra= --dev --no-dev --group= --all-groups --only-group= --no-group= \
    --only-dev --frozen --locked --upgrade --upgrade-package= --offline --no-progress --depth= --dry-run --no-root \
    --sync --with= --without= --only= --extras= --no-interaction --no-cache --check --inexact --exact --active \
    --no-install-project --package= --all-packages \
    ~--project= ~--directory= ~-C= ~-P= ~-p= ~--python= ~--index-url= ~--extra-index-url= ~--default-index= ~--index= \
    ~--find-links= ~-f= ~-i= ~--config-file= ~--config-setting==";

const MAKE: &str = "-j -k -B -s -n -i -w -q -d -t -l -O -r -R --jobs --keep-going --silent --quiet --dry-run --just-print \
    --always-make --no-print-directory --output-sync --trace --warn-undefined-variables --load-average --version \
    !-f= !-C= !-I= !-E== !--file= !--makefile= !--directory= !--include-dir= !--eval==";

const GRADLE: &str = "- -q -i -s -S -w -m --quiet --info --stacktrace --full-stacktrace --scan --no-daemon --daemon --offline --parallel \
    --no-parallel --continue --rerun-tasks --console=: --warning-mode=: --build-cache --no-build-cache \
    --configuration-cache --no-configuration-cache -x= --exclude-task= --tests== --max-workers= --dry-run \
    --refresh-dependencies -v --version --warn --no-scan --no-configure-on-demand --rerun \
    !-I= !-b= !-c= !-p= !-g= !-D== !-P== !--init-script= !--build-file= !--settings-file= !--project-dir= \
    !--include-build= !--gradle-user-home= !--system-prop= !--project-prop= !--project-cache-dir=";

pub(super) static TABLE: &[Program] = &[
    program(&["cargo"], Verbs(&["install", "watch"]))
        .flags(&[CARGO, "-V --version --list"])
        .verbs(&[
            verb("build b check c fix", &[CARGO, BUILD, "--allow-dirty --allow-staged --allow-no-vcs --broken-code --edition"], Any, NONE),
            verb("doc d", &[CARGO, BUILD, "--no-deps --document-private-items"], Any, NONE),
            verb("test t bench", &[CARGO, BUILD], Any, Behind::Flags(&[LIBTEST], Any)),
            verb("run r", &[CARGO, BUILD], Any, Behind::Own),
            verb("clippy", &[CARGO, BUILD, "--fix --allow-dirty --allow-staged --allow-no-vcs --no-deps"], Any, Behind::Flags(&[LINTS], No)),
            verb("fmt", &[CARGO, "-p= --all --check --package= --message-format="], No,
                Behind::Flags(&["-l -v -q --check --edition=: --files-with-diff --verbose --quiet --color=:"], Places)),
            verb("nextest", &[CARGO, BUILD, "-E== --filter-expr== --filterset== --no-capture --nocapture --retries= --test-threads= \
                --status-level=: --final-status-level=: --success-output=: --failure-output=: --hide-progress-bar --no-tests=: \
                --fail-fast --run-ignored=: --cargo-profile=: -P=: --partition= --list-type=: --max-fail=: --show-progress=: \
                !--tool-config-file= ~--config-file= ~--archive-file="],
                OneOf(&["run", "r", "list", "bench"]), Behind::Flags(&[LIBTEST], Any)),
            verb("metadata", &[CARGO, "-F= --format-version= --no-deps --filter-platform= --features= --all-features --no-default-features"], No, NONE),
            verb("tree", &[CARGO, BUILD, "-i= -e= -d -f== --depth= --prefix=: --no-dedupe --duplicates --invert= --edges= --format== --charset=: --prune="], Any, NONE),
            verb("update fetch", &[CARGO, "-p= -w --package= --precise= --recursive --workspace --dry-run --target=: --aggressive"], Any, NONE),
            verb("add remove rm", &[CARGO, "-F= -p= -n --dev --build --optional --no-optional --rename= --features= --no-default-features \
                --default-features --dry-run --package= --ignore-rust-version ~--path= ~--git= ~--registry= ~--branch="], Packages, NONE),
            verb("clean", &[CARGO, "-p= -r -n --package= --release --doc --dry-run --profile=: --target=: --workspace"], No, NONE),
            verb("search info pkgid locate-project verify-project version generate-lockfile", &[CARGO, "--limit= --message-format="], Any, NONE),
            verb("package", &[CARGO, BUILD, "-l --list --allow-dirty --no-verify --no-metadata"], Any, NONE),
            verb("init new", &[CARGO, "--bin --lib --name=: --edition=: --vcs=:"], Places, NONE),
        ]),
    program(&["rustup"], Verbs(&["run"]))
        .flags(&["-v -q -V --verbose --quiet --version"])
        .verbs(&[
            verb("show check update", &["-v --verbose --installed --no-self-update"], Any, NONE),
            verb("component target toolchain", &["-v --installed --toolchain=: --quiet"], OneOf(&["list", "add", "remove", "install"]), NONE),
            verb("run", &["--install"], Then(1), NONE),
        ]),
    program(&["rustfmt", "gofmt", "goimports", "black", "ruff", "isort", "mypy", "flake8", "pylint", "pyright", "clang-format", "shellcheck", "prettier", "biome"], Flags)
        .flags(&["-l -d -s -e -w -q -v -i -c -check --check --edition=: --diff --quiet --verbose --write --list-different --fix --strict \
            --line-length= --target-version=: --select= --ignore= --exclude== --include== --color=: --no-cache --show-fixes --statistics \
            --output-format=: --fail-on-warning --ignore-missing-imports --no-error-summary --show-error-codes --pretty \
            --single-quote --log-level=: --version --help --unsafe-fixes --preview --profile=: --check-only --severity=: --dry-run -Werror -style=: --style=: \
            !--plugin= !--load-plugins= !--python-executable= !--init-hook== !--python-path= !--pythonpath= !--custom-typeshed-dir= ~--config="])
        .operands(Places),
    program(&["go"], Verbs(&["generate", "tool"])).flags(&[GO]).verbs(&[
        verb("build install vet fix", &[GO], Places, NONE),
        verb("test", &[GO, "-run== -bench== -benchmem -benchtime= -count= -cpu= -failfast -fullpath -list== -parallel= -short -shuffle= -skip== \
            -timeout= -fuzz== -fuzztime= -coverprofile=/ -vet=:"], Places, NONE),
        verb("run", &[GO], OwnScript, NONE),
        verb("list", &[GO, "-m -f== -deps -e -u -versions -test -find -export -compiled -retracted"], Any, NONE),
        verb("doc", &["- -all -c -cmd -short -src -u"], Any, NONE),
        verb("fmt", &["- -n -x -mod=:"], Places, NONE),
        verb("mod", &["- -v -x -e -json -go= -compat= -print -fmt"], OneOf(&["tidy", "download", "verify", "graph", "why", "vendor", "init", "edit"]), NONE),
        verb("get", &["- -u -t -v -x -d"], Any, NONE),
        verb("env version help", &["- -json -m -v -changed ~-w ~-u"], Any, NONE),
        verb("clean", &["- -n -x -r -i -cache -testcache -modcache -fuzzcache"], Places, NONE),
        verb("work", &["- -v -r"], OneOf(&["sync", "use"]), NONE),
    ]),
    program(
        &["npm", "pnpm", "yarn"],
        Verbs(&["exec", "x", "dlx", "create", "init", "innit", "explore", "config", "c", "set", "edit", "node", "rebuild"]),
    )
    .flags(&[NPM, "-v --version"])
    .verbs(&[
        verb("test t tst start stop restart build lint dev format typecheck", &[NPM, SCRIPT], Places, Behind::Flags(&[SCRIPT], Places)),
        verb("run run-script", &[NPM, SCRIPT], Places, Behind::Flags(&[SCRIPT], Places)),
        verb("install i add ci update up upgrade", &[NPM], Packages, NONE),
        verb("remove rm uninstall un prune dedupe pack", &[NPM], Packages, NONE),
        verb("audit outdated ls list ll view info show why explain root bin search fund ping", &[NPM, "--fix --format=:"], Any, NONE),
    ]),
    program(&["uv", "poetry", "pipenv", "pdm", "hatch", "rye"], Verbs(&["run", "shell", "exec", "tool"]))
        .flags(&[PYTHON, "--version -V"])
        .verbs(&[
            verb("sync lock install tree show check export", &[PYTHON, "-t -l -o -T -a --tree --latest --outdated --all --top-level --no-hashes --format=:"], Projects, NONE),
            verb("add remove", &[PYTHON], Packages, NONE),
            verb("run", &[PYTHON, "!--with== !--with-editable== !--with-requirements== !-m== !--module== ~--env-file="], Then(0), Behind::Operands),
            verb("version", &[], No, NONE),
        ]),
    program(&["conda", "mamba"], Verbs(&["run", "shell", "exec"]))
        .flags(&["--version"])
        .verbs(&[verb("list info search", &["--json -v"], Any, NONE)]),
    program(&["pip"], Flags)
        .flags(&["--version -q -v !--python="])
        .verbs(&[
            verb("list show freeze check", &["-v -q --outdated --format=: --local --user !--python="], Any, NONE),
            verb("install uninstall", &["-q -v -U -y --upgrade --quiet --no-deps --user --pre --dry-run --no-cache-dir \
                !--python= ~-r= ~-e= ~-i= ~-f= ~-t= ~-c= ~--index-url= ~--extra-index-url= ~--target= ~--prefix= ~--root="], Packages, NONE),
        ]),
    program(&["pytest", "py.test"], Flags)
        .flags(&["-v -q -x -s -l -r= -k== -m== -n= --lf --ff --last-failed --failed-first --maxfail= --tb=: --cov --cov-report=: --durations= \
            --collect-only --co --no-header --no-summary --exitfirst --capture=: --verbose --quiet --sw --stepwise --nf --color=: \
            --disable-warnings --strict-markers --no-cov --reruns= --timeout= --runxfail --showlocals --numprocesses= --version --asyncio-mode=: \
            !-p== !-c= !-o== !-W== !--rootdir= !--confcutdir= !--pyargs !--override-ini== ~--basetemp= ~--junitxml= ~--junit-xml= ~--log-file="])
        .operands(Places),
    program(&["jest", "vitest", "mocha", "ava", "tsc", "eslint", "vite", "webpack", "rollup", "esbuild", "playwright", "cypress", "next"], Flags)
        .flags(&[SCRIPT, "!--config= !-c= !--require== !-r== !--plugin= !--import== !--loader== !--rulesdir= !--resolve-plugins-relative-to= !--globalSetup="])
        .operands(Places)
        .behind(NONE),
    program(&["turbo", "nx", "lerna"], Verbs(&["exec", "run"])).flags(&["--version"]).verbs(&[verb(
        "run run-many affected test build lint list show graph",
        &[SCRIPT, "-p= --projects= --target= --filter= --all --parallel --force --since="],
        Places,
        NONE,
    )]),
    program(&["bundle", "bundler"], Verbs(&["exec"])).flags(&["--version"]).verbs(&[
        verb("install check list show outdated update", &["--quiet --jobs= --retry= --local --verbose"], Any, NONE),
        verb("exec", &[], Then(0), NONE),
    ]),
    program(
        &["rbenv", "nvm", "volta", "nix", "guix", "mise", "asdf", "rtx", "devbox", "nix-shell"],
        Verbs(&["exec", "run", "shell", "develop", "x"]),
    )
    .flags(&["--version !-c== !--command== !--run== !--expr== !-E=="])
    .verbs(&[verb("ls list current versions which version where", &["--json"], Any, NONE)]),
    program(&["make", "gmake"], Targets).flags(&[MAKE]).signs(&["="]).behind(NONE),
    program(&["ninja"], Targets).flags(&["-v -n -k= -j -l --version --quiet !-f= !-C= !-t= !-d="]).behind(NONE),
    program(&["cmake", "ctest", "meson", "bazel", "bazelisk", "scons", "xcodebuild", "sbt", "lein", "ant", "bb", "buck2"], Flags)
        .flags(&["-V --version -v -j= --output-on-failure --parallel= --verbose --config=: -R== --build=/ --target=:"])
        .operands(No)
        .behind(NONE),
    program(&["just"], Targets)
        .flags(&["-n -q -v -l --dry-run --quiet --verbose --list --summary --no-deps --color=: --version \
            !-f= !-d= !-c== !-r= !--justfile= !--working-directory= !--shell== !--shell-arg== !--set== !--command== !--dotenv-path= !--dotenv-filename="])
        .signs(&["="])
        .behind(NONE),
    program(&["task"], Targets)
        .flags(&["-l -a -n -s -v -p -f -w --list --list-all --dry --silent --verbose --parallel --force --status --summary --watch --version \
            !-d= !-t= !-g !--dir= !--taskfile= !--global"])
        .signs(&["="])
        .behind(NONE),
    program(&["rake"], Targets)
        .flags(&["-n -q -s -v -t -T -P -m -j --dry-run --quiet --silent --verbose --trace --tasks --prereqs --version \
            !-f= !-e== !-E== !-p== !-r== !-I= !-R= !-g !-N !--execute== !--execute-continue== !--execute-print== !--require== !--rakefile= !--libdir= !--rakelibdir="])
        .signs(&["="])
        .behind(NONE),
    program(&["gradle", "gradlew"], Targets).flags(&[GRADLE]).behind(NONE),
    program(&["mvn", "mvnw"], Targets)
        .flags(&["- -q -B -e -X -o -U -T= -pl= -am -amd -ntp -fae -fn -ff -N -P=: -v -DskipTests -Dtest -DskipITs -Dmaven.test.skip -DfailIfNoTests \
            --quiet --batch-mode --errors --offline --update-snapshots --threads= --projects= --also-make --no-transfer-progress --version \
            !-f= !-s= !-gs= !-t= !-gt= !-D== !--define== !--file= !--settings= !--global-settings= !--toolchains="])
        .elsewhere(&["@"])
        .behind(NONE),
    program(&["dotnet", "msbuild"], Verbs(&["exec", "tool", "script"]))
        .flags(&["- --version --info --list-sdks"])
        .signs(&["/p:", "-p:", "/property", "-property"])
        .verbs(&[
            verb("build restore test format clean pack", &["- -c=: --configuration=: -f=: --framework=: -v=: --verbosity=: --no-restore --no-build \
                --nologo -r=: --runtime=: --filter== --no-incremental --verify-no-changes --list-tests -t --include== --exclude== \
                --severity=: --no-dependencies --force --blame --collect=: !--property== !-p== ~-o= ~--output= ~-s= ~--source= ~--settings= \
                ~--test-adapter-path="], Projects, NONE),
            verb("list", &["- --outdated --deprecated --vulnerable"], Projects, NONE),
        ]),
    program(&["mix"], Verbs(&["run", "eval", "do", "cmd"]))
        .flags(&["--version !-e== !-r== !--eval== !--require=="])
        .verbs(&[
            verb("compile", &["--force --warnings-as-errors --all-warnings --no-deps-check"], No, NONE),
            verb("format", &["--check-formatted --dry-run"], Places, NONE),
            verb("test", &["--trace --cover --stale --failed --force --seed= --max-failures= --only= --exclude= --include= --no-compile \
                --no-deps-check --color --slowest= --warnings-as-errors --max-cases= !-r== !--require== !--formatter="], Places, NONE),
            verb("deps.get deps", &["--only="], No, NONE),
        ]),
    program(&["swift"], Flags)
        .flags(&["--version !-e== !-Xswiftc== !-Xlinker== !-Xcc== !-X== !--toolchain= !--package-path="])
        .verbs(&[verb("build test", &["- -c=: --configuration=: --filter== --skip== --parallel --enable-code-coverage -v -q --verbose --quiet \
            --list-tests --target=: --product=: -j= --jobs= --build-tests --num-workers= --skip-build --static-swift-stdlib \
            !-Xswiftc== !-Xlinker== !-Xcc== !-Xcxx== !--toolchain= !--package-path= !--build-system= ~--scratch-path="], No, NONE)]),
    program(&["zig"], Verbs(&["run"]))
        .flags(&["- !--build-file= !--build-runner="])
        .verbs(&[
            verb("build", &["- -j --summary=: --verbose -Doptimize -Dtarget -Drelease --release -fincremental --watch --prominent-compile-errors \
                !--build-file= !--build-runner= !--zig-lib-dir= ~--prefix= ~-p= ~--cache-dir="], Places, NONE),
            verb("fmt", &["- --check --ast-check --exclude="], Places, NONE),
            verb("test", &["- --test-filter== -O=: -lc !--test-cmd== !--test-runner= !--zig-lib-dir="], Places, NONE),
            verb("version zen env targets", &["-"], No, NONE),
        ]),
    program(&["concurrently"], Line).flags(&["-n= -c= -k --names= --kill-others --raw"]),
];
