import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import type { Zone } from "./dmarc-dns.ts";
import { DOMAINS, SEEN, type Seen } from "./dmarc-truth.ts";
import { MARIADB, RELAY, REPORTERS, REPORT_HOST } from "./hosts.ts";
import { inNamespace, serverDirectory } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";

const MAIL_DMARC = REPORTERS.mailDmarc;

const SELECTOR = "reports";
const STRING_OCTETS = 200;

/** A key to sign report mails with, and what the DNS says of it. */
export const makeSigningKey = (): { readonly pem: string; readonly zone: Zone } => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "der" },
  });
  const record = `v=DKIM1; k=rsa; p=${publicKey.toString("base64")}`;
  const strings = record.match(new RegExp(`.{1,${STRING_OCTETS}}`, "g")) ?? [];
  const text = strings.map((string) => `"${string}"`).join(" ");
  return { pem: privateKey, zone: { [`${SELECTOR}._domainkey.${MAIL_DMARC.domain}`]: [`TXT ${text}`] } };
};

const configuration = (directory: string): string => `[organization]
domain = ${MAIL_DMARC.domain}
org_name = ${MAIL_DMARC.org}
email = ${MAIL_DMARC.email}
extra_contact_info = https://${MAIL_DMARC.domain}/dmarc
[report_store]
backend = SQL
dsn = dbi:SQLite:dbname=${directory}/reports.sqlite
user =
pass =
auto_save = 0
[report_sign]
algorithm = rsa-sha256
method = relaxed
domain = ${MAIL_DMARC.domain}
selector = ${SELECTOR}
keyfile = ${directory}/dkim.pem
[dmarc]
backend = perl
[dns]
timeout = 5
public_suffix_list = /usr/share/publicsuffix/public_suffix_list.dat
[smtp]
hostname = mail.${MAIL_DMARC.domain}
whitelist = ${directory}/whitelist
`;

/** Has every message judged by the policy that DNS says, as of yesterday, and its row stored. */
const SCRIPT = `use strict; use warnings;
use JSON; use Mail::DMARC::PurePerl;
$Mail::DMARC::Base::_fake_time = time - 86400;
my $rows = do { local (@ARGV, $/) = ($ARGV[0]); decode_json(<>) };
for my $row (@$rows) {
  for (1 .. $row->{count}) {
    my $dmarc = Mail::DMARC::PurePerl->new();
    $dmarc->source_ip($row->{ip}); $dmarc->header_from($row->{headerFrom});
    $dmarc->envelope_from($row->{envelopeFrom}); $dmarc->envelope_to('${MAIL_DMARC.domain}');
    $dmarc->dkim([ map { { domain => $_->{domain}, selector => $_->{selector}, result => $_->{result} } } @{ $row->{dkim} } ]);
    $dmarc->{dkim} ||= [];
    $dmarc->spf([ { domain => $row->{spf}{domain}, scope => $row->{spf}{scope}, result => $row->{spf}{result} } ]);
    $dmarc->validate(); $dmarc->save_aggregate() or die "nothing was stored for $row->{ip}";
  }
}
`;

/** A reporter: it looks at the messages and sends its reports. */
interface Reporter {
  /** Puts the messages in and sends the reports about them; answers what it said. */
  report(): Promise<string>;
}

/** Mail::DMARC, which judges the messages itself, stores them in SQLite and signs its mails. It asks the DNS of `files`. */
export const prepareMailDmarc = async (
  supervisor: Supervisor,
  parent: string,
  { files, pem }: { readonly files: Readonly<Record<string, string>>; readonly pem: string },
): Promise<Reporter> => {
  const directory = await serverDirectory(parent, "mail-dmarc");
  const path = (name: string) => join(directory, name);
  const rows = SEEN.filter(({ reporter }) => reporter === "mailDmarc");
  const overrides = rows.flatMap(({ ip, override }) => (override === null ? [] : [`${ip} ${override}\n`]));
  await Bun.write(path("mail-dmarc.ini"), configuration(directory));
  await Bun.write(path("dkim.pem"), pem);
  await Bun.write(path("whitelist"), overrides.join(""));
  await Bun.write(path("rows.json"), JSON.stringify(rows));
  await Bun.write(path("put.pl"), SCRIPT);
  const env = { MAIL_DMARC_CONFIG_FILE: path("mail-dmarc.ini") };
  const run = (...argv: string[]) => supervisor.run(inNamespace({ files }, argv), { env, cwd: directory });
  return {
    report: async () => {
      await run("perl", path("put.pl"), path("rows.json"));
      return run("dmarc_send_reports", "--verbose", "--delay", "0");
    },
  };
};

const NAME = "mariadb";
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
          ...["--report-org", REPORTERS.openDmarc.org, "--report-email", REPORTERS.openDmarc.email],
          ...["--smtp-server", RELAY.ip, "--smtp-port", String(RELAY.port)],
        ]),
        { env, cwd: directory },
      );
      if (said.code !== 0) throw new Error(`opendmarc-reports: ${said.stderr}`);
      return said.stderr;
    },
  };
};
