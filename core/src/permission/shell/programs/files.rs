//! Tools for files, archives and the network.

use super::How::{Flags, Search};
use super::Operands::{Addresses, Any, No, Packages, Places, Sql, Tar};
use super::{Behind, Program, program, verb};

pub(super) static TABLE: &[Program] = &[
    // Behind `--` find goes on reading conditions.
    program(&["find", "gfind"], Search)
        .flags(&[
            "- -L -P -H -E -X -d -x -name== -iname== -path== -ipath== -wholename== -iwholename== -regex== \
             -iregex== -regextype== -lname== -ilname== -type== -xtype== -size== -mtime== -mmin== \
             -ctime== -cmin== -atime== -amin== -used== -newer== -anewer== -cnewer== -newermt== \
             -newerct== -maxdepth== -mindepth== -depth -mount -xdev -prune -print -print0 -printf== \
             -not -a -o -and -or -empty -executable -readable -writable -perm== -user== -group== \
             -uid== -gid== -nouser -nogroup -links== -inum== -samefile== -follow -ls -quit -true -false \
             -daystart -noleaf -warn -nowarn -ignore_readdir_race \
             ~-exec ~-execdir ~-ok ~-okdir ~-delete ~-fprint== ~-fprint0== ~-fprintf== ~-fls==",
        ])
        .behind(Behind::Same),
    program(&["fd", "fdfind"], Search).flags(&[
        "-H -I -u -s -i -g -F -a -l -L -p -0 -q -1 -# -t= -e= -d= -E== -S== --type= --extension= \
         --max-depth= --min-depth= --exact-depth= --exclude== --hidden --no-ignore --no-ignore-vcs --glob \
         --absolute-path --follow --full-path --color=: --changed-within= --changed-before= --size== \
         --owner== --max-results= --case-sensitive --ignore-case --fixed-strings --list-details --regex \
         --print0 --quiet ~-x ~-X ~--exec ~--exec-batch ~-C= ~--base-directory= ~--search-path= \
         ~--ignore-file=",
    ]),
    program(&["rg"], Flags).flags(&[
        "-n -N -i -s -S -v -w -x -l -c -o -H -I -F -P -U -q -a -L -p -0 -u -A= -B= -C= -e== -g== -t= -T= -m= \
         -d= -r== -j= --files --hidden --no-ignore --no-ignore-vcs --glob== --iglob== --type= --type-not= \
         --type-list --json --stats --multiline --multiline-dotall --pcre2 --count --count-matches \
         --files-with-matches --files-without-match --line-number --no-line-number --ignore-case \
         --case-sensitive --smart-case --word-regexp --line-regexp --fixed-strings --color=: --heading \
         --no-heading --sort=: --sortr=: --max-count= --max-depth= --max-columns= --context= \
         --after-context= --before-context= --only-matching --vimgrep --trim --column --replace== \
         --invert-match --with-filename --no-filename --quiet --text --null --no-messages --regexp== \
         --unrestricted --follow --max-filesize= --no-config --version --passthru \
         !--pre== !--pre-glob== !--hostname-bin==",
    ]),
    program(&["ag", "ack"], Flags)
        .flags(&["-i -s -S -l -L -w -Q -c -v -n -r -o -A= -B= -C= -g== --nogroup --nocolor !--pager== ~--output=="]),
    program(&["tar", "gtar", "bsdtar"], Flags)
        .flags(&[
            "-c -x -t -r -u -v -z -j -J -a -p -k -h -O -m -f= -A --list --extract --create --verbose --gzip --xz \
             --bzip2 --zstd --file= --exclude== --strip-components= --to-stdout --wildcards --dereference \
             --keep-old-files --no-same-owner --auto-compress --totals \
             !--checkpoint-action== !--to-command== !--use-compress-program== !-I== !--info-script== \
             !--new-volume-script== !--rsh-command== !--rmt-command== !-F== ~-C= ~--directory= ~-P ~-T= ~-X= \
             ~--files-from= ~--absolute-names",
        ])
        // `host:file` is fetched by a shell of another machine.
        .elsewhere(&[":"])
        .operands(Tar),
    program(&["rsync", "scp", "sftp"], Flags).flags(&[
        "-a -v -z -r -n -h -u -t -l -p -c -q -x -H -i -P -C --delete --dry-run --exclude== --include== \
         --progress --stats --partial --archive --verbose --recursive --checksum --update \
         --human-readable --itemize-changes --compress --quiet \
         !-e== !--rsh== !--rsync-path== !-S== !-o== !-F== !-J== !-D= ~-b= ~-T= ~-M==",
    ]),
    program(&["zip"], Flags)
        .flags(&["-r -q -j -u -v -# !-TT== !-T !--unzip-command== ~-@ ~-b= ~-O="])
        .operands(Places),
    program(&["unzip"], Flags).flags(&["-l -q -o -n -v -t -Z -j -p -c -d=/ !-TT== !--unzip-command=="]),
    program(&["7z", "7za"], Flags).flags(&["- -y -bd"]).operands(Places),
    program(&["sort", "gsort"], Flags).flags(&[
        "-n -r -u -f -h -V -s -b -c -C -m -z -g -M -d -i -R -k= -t== --reverse --unique --key= \
         --field-separator== --numeric-sort --human-numeric-sort --version-sort --ignore-case \
         --stable --check --zero-terminated --parallel= !--compress-program== ~-o= ~--output= ~-T= ~--files0-from=",
    ]),
    program(&["split", "csplit"], Flags)
        .flags(&["-l= -b= -n= -C= -a= -d -x -e -u --lines= --bytes= --numeric-suffixes --verbose !--filter=="])
        .operands(Places),
    program(&["curl"], Flags)
        .flags(&[
            "-s -S -f -L -i -I -v -G -k -4 -6 -X=: -H=@ -A== -m= -d=@ -e== --silent --show-error --fail \
             --fail-with-body --location --include --head --verbose --compressed --max-time= \
             --connect-timeout= --retry= --retry-delay= --http1.1 --http2 --get --insecure --request=: \
             --header=@ --user-agent== --data=@ --data-raw== --json=@ --no-progress-meter --progress-bar \
             --version !-K== !--config== !--engine= ~-o= ~-O ~--output= ~--remote-name ~-D= ~-J ~-T= ~-F== \
             ~-c= ~-b= ~-w== ~-x= ~-u= ~-E=",
        ])
        .operands(Addresses),
    program(&["wget"], Flags)
        .flags(&[
            "-q -S -c -4 -6 -nv -nc -t= -T= --spider --quiet --server-response --no-verbose --continue \
             --timeout= --tries= --max-redirect= --no-clobber --header== --version \
             !--use-askpass== !-e== !--execute== !--config= ~-O= ~--output-document= ~-o= ~-a= ~-P= ~-i= ~-r",
        ])
        .operands(Addresses),
    program(&["apt", "apt-get", "dnf", "yum", "brew", "apk"], Flags)
        .flags(&["-v --version !-o== !-c== !--option== !--config-file== !--setopt== !--config=="])
        .verbs(&[
            verb("update upgrade autoremove full-upgrade dist-upgrade clean autoclean",
                &["-y -q --yes --quiet -s --dry-run --no-install-recommends !-o== !-c=="], No, Behind::Nothing),
            verb("list show search info policy depends rdepends", &["-q -a --installed --upgradable --all-versions !-o== !-c=="], Any, Behind::Nothing),
            verb("install remove add reinstall",
                &["-y -q --yes --quiet -s --dry-run --no-install-recommends --only-upgrade --reinstall !-o== !-c=="],
                Packages, Behind::Nothing),
        ]),
    program(&["sqlite3", "duckdb"], Flags)
        .flags(&["- -readonly -json -csv -header -batch -line -column -box -table -markdown -bail -version \
            !-cmd== !-init== ~-c== ~-f=="])
        .elsewhere(&["load_extension", "writefile", "edit(", "readfile", "ATTACH", "attach", "COPY", "copy", "INSTALL", "LOAD"])
        .operands(Sql),
    program(&["psql", "mysql", "mariadb"], Flags)
        .flags(&["--version -U= -h= !-c== !-e== !-f= !--command== !--execute== !--pager== !--file="])
        .operands(Places),
    program(&["openssl"], Flags).flags(&["!-engine== !-provider== !-provider-path== !-config="]),
    program(&["cc", "gcc", "g++", "c++", "clang", "clang++", "rustc", "ld", "tcc", "javac", "nasm"], Flags)
        .flags(&["- -c -g -O -O0 -O1 -O2 -O3 -Os -Og -v -Wall -Wextra -Werror -pedantic -fsyntax-only -std -E -S --edition=: --version --help -version \
            !-B= !-specs== !-wrapper== !-plugin== !-fplugin== !-C== !-Xlinker== !-processorpath= !-javaagent== !-cp= ~-o= ~-I= ~-L="])
        .operands(Places),
    program(&["tcpdump", "nmap", "systemctl", "journalctl", "openvpn"], Flags)
        .flags(&["-n -v --version !-z== !--script== !--up== !-M= !--root="]),
];
