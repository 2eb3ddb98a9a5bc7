//! Programs whose business is to run others, shells, and what shells evaluate.

use super::How::{Evaluates, Filled, Flags, Line, Program as Runs, Shell, Source, Verbs};
use super::Operands::{Any, No, Program as Then};
use super::{Behind, Program, program, verb};

pub(super) static TABLE: &[Program] = &[
    program(&["env"], Runs).flags(&["-i -0 -v -u= --ignore-environment --null --unset= --debug \
        !-S== !--split-string== ~-C= ~--chdir="]),
    program(&["sudo", "doas"], Runs).flags(&["-n -k -K -v -l -H -b -E -A -S -B \
        !-e !-i !-s !--edit !--shell !--login ~-u= ~-g= ~-p= ~-C= ~-h= ~-r= ~-R= ~-t= ~-T= ~-U= ~-D="]),
    program(&["nice"], Runs).flags(&["-n== --adjustment= -#"]),
    program(&["ionice"], Runs).flags(&["-c= -n= -t -p="]),
    program(&["timeout", "gtimeout"], Runs)
        .flags(&["-k= -s= -v -f -p --kill-after= --signal= --foreground --preserve-status --verbose"])
        .operands(Then(1)),
    program(&["time"], Runs).flags(&["-p -v -l -f== ~-o= ~-a"]),
    program(&["stdbuf"], Runs).flags(&["-i= -o= -e="]),
    program(&["chrt", "taskset"], Runs).flags(&["-c -a -b -f -i -o -r -p"]).operands(Then(1)),
    program(&["setpriv", "prlimit", "setarch", "numactl"], Runs),
    program(&["ld.so"], Runs),
    program(&["chroot"], Runs).operands(Then(1)),
    program(&["unshare", "nsenter", "bwrap", "firejail"], Runs),
    program(&["proot", "fakeroot", "fakechroot", "systemd-run"], Runs),
    program(&["gosu", "su-exec"], Runs).operands(Then(1)),
    program(&["pkexec", "runuser"], Runs).flags(&["~-u= ~-g= !-c== !--command=="]),
    program(&["nohup", "setsid", "disown", "builtin"], Runs),
    program(&["command"], Runs).flags(&["-v -V -p"]),
    program(&["exec"], Runs).flags(&["-c -l -a=="]),
    program(&["coproc", "busybox", "toybox"], Runs),
    program(&["strace", "ltrace", "valgrind", "perf", "rr"], Runs)
        .flags(&["-f -q -c ~-e= ~-o= ~-p= ~-s= ~-u="]),
    program(&["caffeinate", "unbuffer", "rlwrap"], Runs),
    program(&["faketime"], Runs).operands(Then(1)),
    program(&["torsocks", "proxychains", "xvfb-run"], Runs),
    program(&["dbus-run-session", "start-stop-daemon", "daemonize"], Runs),
    program(&["flock"], Runs)
        .flags(&["-n -x -s -u -e -w= -E= --nonblock --exclusive --shared --timeout= !-c== !--command=="])
        .operands(Then(1)),
    program(&["chronic", "ifne", "sem", "cpulimit", "entr"], Runs),
    program(&["watchexec", "nodemon", "hyperfine", "direnv"], Runs),
    program(&["npx", "bunx", "pnpx", "uvx", "pipx"], Runs)
        .flags(&["-y -q --yes --no --no-install --quiet !-c== !--call== !-p== !--package== !--from== !--with=="]),
    program(&["cross-env", "dotenv", "env-cmd"], Runs).flags(&["~-e= ~-f="]),
    program(&["xargs", "gxargs"], Filled).flags(&[
        "-0 -r -t -x -n= -P= -L= -I== -E== -d== -s= --null --no-run-if-empty --max-args= \
         --max-procs= --verbose ~-a= ~--arg-file=",
    ]),
    program(&["parallel", "rush", "run-parts"], Filled)
        .flags(&["-k -0 -j= -n= -N= -I== -L= ~-a= ~-S="]),
    // What makes a line of its words.
    program(&["eval"], Line),
    program(&["trap"], Line),
    program(&["ssh", "mosh", "rsh"], Line)
        .flags(&["-4 -6 -q -v -n -T -t -C -l= -p= \
            !-o== !-F== !-J== !-w== ~-B= ~-b= ~-c= ~-D= ~-E= ~-e= ~-I= ~-i= ~-L= ~-m= ~-O= ~-Q= ~-R= ~-S= ~-W="])
        .operands(Then(1)),
    program(&["watch"], Line).flags(&["-n= -d -t -g -e -c -x --interval= --no-title --color"]),
    program(&["su"], Line).flags(&["-l -m -p !-c== !--command== !-s== !--shell== ~-g= ~-G="]).operands(Then(1)),
    program(&["script"], Line).flags(&["-q -e -f !-c== !--command== ~-E= ~-I= ~-O= ~-B= ~-T="]),
    program(&["tmux", "screen", "at", "batch", "crontab", "expect"], Line)
        .flags(&["!-c== !-f== !-S== !-X ~-L= ~-T="]),
    // Shells, and what they read.
    program(
        &[
            "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh", "yash",
            "rbash", "pwsh", "powershell", "nu", "elvish", "xonsh",
        ],
        Shell,
    )
    .flags(&[
        "-e -u -x -v -n -f -C -o=: --norc --noprofile --posix --version --help \
         ~-c ~-s ~-i ~-O= ~--rcfile= ~--init-file= ~--command== ~-Command==",
    ]),
    program(&["source", "."], Source).flags(&[""]),
    // Parts of the shell that look at the text of their words once more: subscripts, arithmetic.
    program(&["test"], Evaluates).flags(&[
        "- -a -b -c -d -e -f -g -h -k -n -o -p -r -s -t -u -w -x -z -G -L -N -O -S \
         -eq -ne -lt -le -gt -ge -nt -ot -ef ~-v= ~-R=",
    ]),
    program(&["printf"], Evaluates).flags(&["~-v="]),
    program(&["let", "read", "unset", "getopts", "wait", "shift", "return", "exit"], Evaluates)
        .flags(&["-r -s -f -n= -p= -t= -d= ~-v ~-a= ~-u="]),
    program(&["declare", "typeset", "local", "export", "readonly", "ulimit", "set", "shopt"], Evaluates)
        .flags(&["-p -x -r -g -f -a -A -i -l -u -n -s -e -o="]),
    program(
        &["alias", "hash", "enable", "complete", "compgen", "bind", "mapfile", "readarray", "autoload", "zmodload", "fc"],
        Flags,
    )
    .signs(&[""])
    .operands(No),
    // Containers and machines.
    program(
        &["docker", "podman", "nerdctl", "lxc", "vagrant", "flatpak"],
        Verbs(&["exec", "run", "compose", "build", "debug", "ssh"]),
    )
    .flags(&["-v --version ~-H= ~-c= ~--context= ~--host= ~--config="])
    .verbs(&[
        verb(
            "ps images logs inspect version info top port search history diff list",
            &["-a -q -f -l -n= -t -s --all --quiet --follow --latest --no-trunc --format== --filter== \
               --tail= --since= --until= --timestamps --size --last="],
            Any,
            Behind::Operands,
        ),
        verb("start stop restart pause unpause kill rm rmi pull", &["-f -t= -q -s= --force --time= --quiet --signal="], Any, Behind::Operands),
    ]),
    program(&["kubectl", "oc"], Verbs(&["exec", "run", "debug"]))
        .flags(&["-n= --namespace= ~--context= ~--kubeconfig= ~-s= ~--server= ~--token="])
        .verbs(&[verb(
            "get describe logs top version api-resources explain events",
            &["-n= -o== -l== -A -w -f -c= -p --namespace= --output== --selector== --all-namespaces \
               --watch --follow --container= --previous --tail= --since= --sort-by== --show-labels --client"],
            Any,
            Behind::Operands,
        )]),
];
