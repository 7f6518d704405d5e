import { existsSync, mkdirSync, readFileSync, readdirSync, rmdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { buildDebianPackage } from "../release/debian-package.ts";
import { ARCHITECTURES, elfMachineOf } from "../release/elf.ts";
import type { Subject } from "./ask.ts";
import { type Claim, claim } from "./claims.ts";
import type { Supervisor } from "./processes.ts";

const SCRIPT = join(import.meta.dir, "systemd-root.sh");
const CGROUP = "postwarden-lab";
const BOOT_TRIES_MAX = 100;
const PAUSE_MS = 100;
const COMMAND_TIMEOUT_MS = 60_000;

/** The hierarchies of control groups that systemd uses: one, or two where version 1 is mounted beside it. */
const hierarchies = (): readonly string[] =>
  ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"].filter((path) =>
    existsSync(join(path, "cgroup.procs")),
  );

const removeGroup = (path: string): void => {
  if (!existsSync(path)) return;
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) removeGroup(join(path, entry.name));
  rmdirSync(path);
};

const childOf = (pid: number): number | undefined => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? undefined : Number(children.split(" ")[0]);
};

/** A copy of this machine in memory, with a systemd of its own and without a network. */
interface SystemdRoot {
  /** Runs a shell command in it. */
  sh(script: string): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
  /** Ends every process in it. */
  stop(): Promise<void>;
}

/** Boots the root. Its changes are gone after `stop`. */
const bootSystemd = async (supervisor: Supervisor, directory: string): Promise<SystemdRoot> => {
  const groups = hierarchies().map((path) => join(path, CGROUP));
  for (const path of groups) mkdirSync(path, { recursive: true });
  const enter = groups.map((path) => `echo $$ > ${path}/cgroup.procs`).join("; ");
  const unshare = "unshare --mount --pid --fork --kill-child --net --uts --ipc --cgroup";
  const child = Bun.spawn(["sh", "-c", `${enter}; exec ${unshare} sh ${SCRIPT} ${directory}`], {
    stdio: ["ignore", "ignore", Bun.file(join(directory, "systemd.log"))],
  });
  const inside = (script: string) =>
    supervisor.finish(
      [...["nsenter", "--target", String(childOf(child.pid) ?? 0), "--all", "--root", "--wd", "sh", "-c"], script],
      { timeoutMs: COMMAND_TIMEOUT_MS, env: { DEBIAN_FRONTEND: "noninteractive" } },
    );
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await child.exited;
    for (let tries = 0; tries < BOOT_TRIES_MAX; tries++) {
      try {
        for (const path of groups) removeGroup(path);
        return;
      } catch {
        // The kernel removes the processes of the namespace after its first one.
        await Bun.sleep(PAUSE_MS);
      }
    }
  };
  for (let tries = 0; tries < BOOT_TRIES_MAX; tries++) {
    const isUp = childOf(child.pid) !== undefined && (await inside("systemctl is-active basic.target")).code === 0;
    if (isUp) return { sh: inside, stop };
    if (child.exitCode !== null) break;
    await Bun.sleep(PAUSE_MS);
  }
  await stop();
  const log = readFileSync(join(directory, "systemd.log"), "utf8");
  throw new Error(`systemd does not start in a namespace here.\n${log}`);
};

const ROOT = resolve(import.meta.dir, "../..");
const UNIT = join(ROOT, "scripts/release/debian/postwarden.service");
/** Where Bun keeps the runtimes of other machines. */
const CACHE = join(ROOT, "node_modules/.cache/bun");
const EXPOSURE_MAX = 2;
const TIME = new Date("2026-01-01T00:00:00Z");
const [OLD, NEW] = ["0.0.1", "0.0.2"] as const;

const cell = (what: string, expected: string, got: string): Claim => claim("package", what, expected, got);

/** What a shell command should print in the root. */
interface Printed {
  readonly what: string;
  readonly sh: string;
  readonly expected: string;
}

const STATE = "systemctl is-active postwarden; systemctl is-enabled postwarden";
const LOG = "journalctl -u postwarden -o cat --no-pager";
const KEY = 'sed -E \'s/.*"test_key":"([^"]+)".*/\\1/\' /var/lib/postwarden/first-keys.json';
const CHECK = `curl -s -H "Authorization: Bearer $(${KEY})" -d '{"email":"mailbox_exists@any.example"}' 127.0.0.1:8080/v1/email-verifications`;
const COMMAND = "postwarden accounts list --env-file /etc/postwarden.env --json";
const MODES = "stat -c '%a %U %G' /etc/postwarden.env /var/lib/postwarden /var/lib/postwarden/postwarden.db";

const SETTINGS = ["POSTWARDEN_REPORT_HOST=reports.example.com", "POSTWARDEN_REPORT_LISTEN=127.0.0.1:25"];

const POLICY_SOCKET = "/run/postwarden/policy.sock";
/** What a mail server of this machine asks (Postfix, SMTPD_POLICY_README), and prints of the response. */
const ASK_POLICY = `use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => "${POLICY_SOCKET}") or die $!; print $s "request=smtpd_access_policy\\nrecipient=a\\@example.com\\n\\n"; $s->flush; print scalar <$s>`;

const FIRST_INSTALL: readonly Printed[] = [
  {
    what: "installs without a message on standard error",
    sh: `dpkg -i /mnt/postwarden_${OLD}-1_amd64.deb 2>&1 >/dev/null | grep -vE '^(Creat|Not building database)'`,
    expected: "",
  },
  { what: "the service runs and starts with the machine", sh: STATE, expected: "active enabled" },
  {
    what: "owners and modes",
    sh: MODES,
    expected: "640 root postwarden 700 postwarden postwarden 600 postwarden postwarden",
  },
  {
    what: "the first keys are in a file and not in the journal",
    sh: `${LOG} | grep -c pw_test_; stat -c %a /var/lib/postwarden/first-keys.json`,
    expected: "0 600",
  },
  {
    what: "it verifies an address",
    sh: `${CHECK} | grep -o '"sub_status":"[a-z_]*"'`,
    expected: '"sub_status":"mailbox_exists"',
  },
  {
    what: "root uses the command line beside it",
    sh: `${COMMAND} | grep -o '"name":"default"'`,
    expected: '"name":"default"',
  },
  {
    what: "it listens on port 25 without root",
    sh: `echo '${SETTINGS.join("\n")}' >> /etc/postwarden.env; systemctl restart postwarden; curl -s -m 2 telnet://127.0.0.1:25 </dev/null | cut -c1-4`,
    expected: "220",
  },
  {
    what: "other users ask the policy service at a socket in /run, also after a restart",
    sh: `printf '%s' '${ASK_POLICY}' > /tmp/ask.pl; chmod 644 /tmp/ask.pl; echo POSTWARDEN_POLICY_LISTEN=${POLICY_SOCKET} >> /etc/postwarden.env; for n in 1 2; do systemctl restart postwarden; su -s /bin/sh nobody -c 'perl /tmp/ask.pl'; done; stat -c %U ${POLICY_SOCKET}; systemctl stop postwarden; ls ${POLICY_SOCKET} 2>/dev/null; systemctl start postwarden; systemctl reset-failed postwarden`,
    expected: "action=DUNNO action=DUNNO postwarden",
  },
  {
    what: "it collects garbage as on a machine with 512 MiB",
    sh: "tr '\\0' '\\n' < /proc/$(systemctl show -p MainPID --value postwarden)/environ | grep ^BUN_JSC",
    expected: "BUN_JSC_forceRAMSize=536870912",
  },
  {
    what: "its user cannot write elsewhere, see other processes or gain privileges",
    sh: "grep -E '^(NoNewPrivs|CapBnd|Seccomp):' /proc/$(systemctl show -p MainPID --value postwarden)/status | tr -s '\\t' ' '",
    expected: "CapBnd: 0000000000000400 NoNewPrivs: 1 Seccomp: 2",
  },
  {
    what: "a reload changes the log level",
    sh: `echo POSTWARDEN_LOG_LEVEL=debug >> /etc/postwarden.env; systemctl reload postwarden; sleep 0.3; ${LOG} | grep -o '"changed":.*'`,
    expected: '"changed":["POSTWARDEN_LOG_LEVEL"]}',
  },
  {
    what: "an invalid setting fails the restart, and the journal says why",
    sh: `cp /etc/postwarden.env /tmp/env; echo POSTWARDEN_PORTT=1 >> /etc/postwarden.env; systemctl restart postwarden 2>/dev/null || echo failed; ${LOG} | grep -c 'POSTWARDEN_PORTT: Unknown setting'; cp /tmp/env /etc/postwarden.env; systemctl reset-failed postwarden; systemctl restart postwarden; systemctl is-active postwarden`,
    expected: "failed 1 active",
  },
];

const LATER: readonly Printed[] = [
  {
    what: "an upgrade restarts the service and keeps settings and data",
    sh: `before=$(systemctl show -p MainPID --value postwarden); dpkg -i /mnt/postwarden_${NEW}-1_amd64.deb >/dev/null 2>/tmp/err; grep -v "^Not building database" /tmp/err; [ "$before" = "$(systemctl show -p MainPID --value postwarden)" ] || echo restarted; ${STATE}; tail -1 /etc/postwarden.env; ${COMMAND} | grep -o '"name":"default"'`,
    expected: 'restarted active enabled POSTWARDEN_LOG_LEVEL=debug "name":"default"',
  },
  {
    what: "the upgraded settings file keeps its mode",
    sh: "stat -c '%a %U %G' /etc/postwarden.env",
    expected: "640 root postwarden",
  },
  {
    what: "a removal stops it and keeps settings and data",
    sh: `dpkg -r postwarden >/dev/null 2>&1; ls /usr/bin/postwarden /lib/systemd/system/postwarden.service 2>/dev/null; systemctl is-active postwarden; ls /etc/postwarden.env /var/lib/postwarden/postwarden.db`,
    expected: "inactive /etc/postwarden.env /var/lib/postwarden/postwarden.db",
  },
  {
    what: "after another installation it runs with the same data",
    sh: `dpkg -i /mnt/postwarden_${NEW}-1_amd64.deb >/dev/null 2>&1; ${STATE}; ${CHECK} | grep -o '"status":"completed"'`,
    expected: 'active enabled "status":"completed"',
  },
  {
    what: "SIGTERM stops it gracefully",
    sh: `systemctl stop postwarden; ${LOG} | tail -5 | grep -c '"message":"stopped"'; systemctl show -p Result --value postwarden`,
    expected: "1 success",
  },
  {
    what: "a purge removes everything but the data, and says so",
    sh: `dpkg -P postwarden 2>&1 | grep -o 'the data in .* was kept'; ls /etc/postwarden.env /usr/share/doc/postwarden /etc/systemd/system/multi-user.target.wants/postwarden.service 2>/dev/null; ls /var/lib/postwarden/postwarden.db`,
    expected: "the data in /var/lib/postwarden was kept /var/lib/postwarden/postwarden.db",
  },
];

const COMPLETE = `source /usr/share/bash-completion/completions/postwarden; complete_words() { COMP_WORDS=(postwarden "$@"); COMP_CWORD=$#; _postwarden; echo "\${COMPREPLY[*]}"; }`;

const DOCUMENTATION: readonly Printed[] = [
  {
    what: "every link of its documentation leads to a file of the package",
    sh: `cd /usr/share/doc/postwarden && grep -oE '\\]\\([^)#: ]+\\.[a-z]+' -r --include=*.md . | sed 's/:](/ /' | while read -r file link; do [ -e "$(dirname "$file")/$link" ] || echo "$file: $link"; done; ls manual | grep -cE '^(lists|running-it|reference-settings)\\.md$'`,
    expected: "3",
  },
  {
    what: "the manual page has no errors",
    sh: "man --warnings -l /usr/share/man/man1/postwarden.1.gz 2>&1 >/dev/null",
    expected: "",
  },
  {
    what: "the manual page describes commands and settings",
    sh: "man -l /usr/share/man/man1/postwarden.1.gz | grep -oE '^ +keys create|POSTWARDEN_DATA_DIR,' | tr -d ' ' | sort -u",
    expected: "POSTWARDEN_DATA_DIR, keyscreate",
  },
  {
    what: "completion of commands in bash",
    sh: `bash -c '${COMPLETE}; complete_words keys cr; complete_words keys create --mode ""; complete_words web'`,
    expected: "create live test webhooks",
  },
  {
    what: "completion in zsh and fish is valid",
    sh: "for shell in zsh fish; do command -v $shell >/dev/null || continue; $shell -n /usr/share/$shell/vendor*completions*/*postwarden* || echo $shell; done",
    expected: "",
  },
];

const check = async (root: SystemdRoot, { what, sh, expected }: Printed): Promise<Claim> => {
  const { stdout, stderr } = await root.sh(sh);
  return cell(
    what,
    expected,
    (stdout + stderr)
      .trim()
      .split(/\s*\n\s*|(?<=^inactive) /)
      .join(" "),
  );
};

/** The analysis of systemd, which needs no running service. */
const analyze = async (supervisor: Supervisor): Promise<readonly Claim[]> => {
  const security = await supervisor.finish(["systemd-analyze", "security", "--offline=true", "--no-pager", UNIT]);
  const exposure = Number(/level for postwarden\.service: ([\d.]+)/.exec(security.stdout)?.[1] ?? Number.NaN);
  const { stderr } = await supervisor.finish(["systemd-analyze", "verify", "--man=no", UNIT]);
  // The executable is not installed on this machine.
  const problems = stderr
    .split("\n")
    .filter((line) => line !== "" && !line.includes("/usr/bin/postwarden is not executable"));
  return [
    cell(
      `systemd-analyze security: at most ${EXPOSURE_MAX}`,
      "true",
      exposure <= EXPOSURE_MAX ? "true" : `${exposure}`,
    ),
    cell("systemd-analyze verify", "", problems.join("; ")),
  ];
};

const hashOf = (path: string): string => new Bun.CryptoHasher("sha256").update(Bun.mmap(path)).digest("hex");

const buildPackages = (binary: string, folder: string): readonly Claim[] => {
  const build = (version: string, to: string): string => {
    mkdirSync(to, { recursive: true });
    return buildDebianPackage({
      ...{ binary, architecture: "amd64", version, time: TIME, folder: to, compression: "none" },
    });
  };
  build(OLD, folder);
  const [first, second] = [build(NEW, folder), build(NEW, join(folder, "again"))].map(hashOf);
  return [cell("two builds have the same bytes", "true", String(first === second))];
};

/** No emulator is needed to see what machine an executable is for. */
const checkOtherMachines = async (supervisor: Supervisor, directory: string): Promise<readonly Claim[]> => {
  const cells: Claim[] = [];
  for (const { debian, target, elfMachine } of ARCHITECTURES.filter((each) => each.debian !== "amd64")) {
    const outfile = join(directory, `postwarden-${debian}`);
    await supervisor.run(
      [process.execPath, join(ROOT, "scripts/build.ts"), `--target=${target}`, `--outfile=${outfile}`],
      { cwd: directory, env: { BUN_INSTALL_CACHE_DIR: CACHE } },
    );
    cells.push(cell(`the executable for ${debian}`, String(elfMachine), String(elfMachineOf(outfile))));
  }
  return cells;
};

/** Installs, upgrades, removes and purges the Debian package on a copy of this machine with a systemd of its own. */
export const runPackage = async (supervisor: Supervisor, { binary, directory }: Subject): Promise<readonly Claim[]> => {
  const place = join(directory, "package");
  const cells = [...(await analyze(supervisor)), ...buildPackages(binary, join(place, "packages"))];
  const root = await bootSystemd(supervisor, place);
  try {
    for (const claim of [...FIRST_INSTALL, ...DOCUMENTATION, ...LATER]) cells.push(await check(root, claim));
  } finally {
    await root.stop();
  }
  return [...cells, ...(await checkOtherMachines(supervisor, place))];
};
