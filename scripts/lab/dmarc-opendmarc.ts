import { join } from "node:path";
import type { Reporter } from "./dmarc-mail-dmarc.ts";
import { MARIADB, RELAY, REPORT_HOST, REPORTERS } from "./dmarc-places.ts";
import { DOMAINS, SEEN, type Seen } from "./dmarc-truth.ts";
import { inNamespace, serverDirectory } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";

const NAME = "mariadb";
const { org, email } = REPORTERS.openDmarc;
const DATABASE = "opendmarc";
/** When the messages came: within the last day, which is what a report is about. */
const RECEIVED_S_AGO = 3_600;

/** Numbers by which OpenDMARC's history file says what became of a message. */
const SPF: Readonly<Record<string, number>> = { pass: 0, softfail: 2, neutral: 3, temperror: 4, permerror: 5, fail: 7 };
const ACTION: Readonly<Record<string, number>> = { reject: 1, none: 2, quarantine: 4 };
const ALIGNED = { pass: 4, fail: 5 } as const;
const LETTER = { none: "n", quarantine: "q", reject: "r" } as const;

const historyOf = (seen: Seen, index: number, rua: string): string => {
  const [disposition, dkim, spf] = seen.expected;
  const letter = LETTER[seen.policy].charCodeAt(0);
  const arcPasses = seen.override?.includes("arc=pass") === true;
  const lines = [
    ...[`job ${index}`, "reporter mail.sloppy-lab.net", `received ${Math.floor(Date.now() / 1000) - RECEIVED_S_AGO}`],
    ...[`ipaddr ${seen.ip}`, `from ${seen.headerFrom}`, `mfrom ${seen.envelopeFrom}`, `spf ${SPF[seen.spf.result]}`],
    ...[`pdomain ${DOMAINS[seen.policy]}`, "policy 15", `rua ${rua}`, "pct 100", "adkim 114", "aspf 114"],
    ...[`p ${letter}`, `sp ${letter}`, `align_dkim ${ALIGNED[dkim]}`, `align_spf ${ALIGNED[spf]}`],
    ...[`arc ${arcPasses ? 1 : 2}`, `arc_policy ${arcPasses ? 0 : 1} json:[]`, `action ${ACTION[disposition]}`],
    ...seen.dkim.map(({ domain, selector, result }) => `dkim ${domain} ${selector} ${SPF[result]}`),
  ];
  return `${lines.join("\n")}\n`;
};

/** A server without users and without its own system tables: that makes it start in half a second. */
const startMariadb = async (supervisor: Supervisor, directory: string): Promise<void> => {
  const argv = [
    ...["mariadbd", "--no-defaults", "--user=root", "--skip-grant-tables", `--datadir=${join(directory, "data")}`],
    ...[`--socket=${join(directory, "socket")}`, `--bind-address=${MARIADB.ip}`, `--port=${MARIADB.port}`],
    ...["--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0", "--default-time-zone=+00:00"],
  ];
  supervisor.start({ name: NAME, argv });
  await supervisor.waitForPort(NAME, MARIADB.ip, MARIADB.port);
};

/** Makes the tables of the package's own schema; `users` of it have no place here. */
const MAKE_TABLES = `use strict; use warnings; use DBI;
my $db = DBI->connect("DBI:mysql:host=${MARIADB.ip};port=${MARIADB.port}", "root", "", { RaiseError => 1 });
local $/; open my $file, '<', $ARGV[0] or die; my $schema = <$file>; $schema =~ s/^--.*$//mg;
for my $statement (split /;/, $schema) { $db->do($statement) if $statement =~ /\\S/; }
`;

/** OpenDMARC's importer and reporter, over a MariaDB of the lab. `unpacked` is the directory of the package. */
export const prepareOpenDmarc = async (
  supervisor: Supervisor,
  parent: string,
  { unpacked, files }: { readonly unpacked: string; readonly files: Readonly<Record<string, string>> },
): Promise<Reporter & { setTokens(tokens: Readonly<Record<string, string>>): void }> => {
  const directory = await serverDirectory(parent, NAME, ["data"]);
  const path = (name: string) => join(directory, name);
  const env = { TZ: "UTC" };
  const run = (...argv: string[]) => supervisor.run(inNamespace({ files }, argv), { env, cwd: directory });
  const where = ["--dbhost", MARIADB.ip, "--dbport", String(MARIADB.port), "--dbuser", "root", "--dbpasswd", ""];
  let tokenOf: Readonly<Record<string, string>> = {};
  await Bun.write(path("make-tables.pl"), MAKE_TABLES);
  await startMariadb(supervisor, directory);
  await run("perl", path("make-tables.pl"), join(unpacked, `usr/share/dbconfig-common/data/${DATABASE}/install/mysql`));
  return {
    setTokens: (tokens) => {
      tokenOf = tokens;
    },
    report: async () => {
      const rows = SEEN.filter(({ reporter }) => reporter === "openDmarc");
      const rua = ({ policy }: Seen) => `mailto:${tokenOf[DOMAINS[policy]]}@${REPORT_HOST}`;
      await Bun.write(path("history"), rows.map((seen, index) => historyOf(seen, index, rua(seen))).join(""));
      await run(join(unpacked, "usr/sbin/opendmarc-import"), ...where, "--input", path("history"));
      const said = await supervisor.finish(
        inNamespace({ files }, [
          ...[join(unpacked, "usr/sbin/opendmarc-reports"), ...where, "--verbose", "--utc"],
          ...["--report-org", org, "--report-email", email],
          ...["--smtp-server", RELAY.ip, "--smtp-port", String(RELAY.port)],
        ]),
        { env, cwd: directory },
      );
      if (said.code !== 0) throw new Error(`opendmarc-reports: ${said.stderr}`);
      return said.stderr;
    },
  };
};
