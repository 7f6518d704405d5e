import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import type { Zone } from "./dmarc-dns.ts";
import { REPORTERS } from "./dmarc-places.ts";
import { SEEN } from "./dmarc-truth.ts";
import { inNamespace, serverDirectory } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";

const { org, domain, email } = REPORTERS.mailDmarc;

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
  return { pem: privateKey, zone: { [`${SELECTOR}._domainkey.${domain}`]: [`TXT ${text}`] } };
};

const configuration = (directory: string): string => `[organization]
domain = ${domain}
org_name = ${org}
email = ${email}
extra_contact_info = https://${domain}/dmarc
[report_store]
backend = SQL
dsn = dbi:SQLite:dbname=${directory}/reports.sqlite
user =
pass =
auto_save = 0
[report_sign]
algorithm = rsa-sha256
method = relaxed
domain = ${domain}
selector = ${SELECTOR}
keyfile = ${directory}/dkim.pem
[dmarc]
backend = perl
[dns]
timeout = 5
public_suffix_list = /usr/share/publicsuffix/public_suffix_list.dat
[smtp]
hostname = mail.${domain}
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
    $dmarc->envelope_from($row->{envelopeFrom}); $dmarc->envelope_to('${domain}');
    $dmarc->dkim([ map { { domain => $_->{domain}, selector => $_->{selector}, result => $_->{result} } } @{ $row->{dkim} } ]);
    $dmarc->{dkim} ||= [];
    $dmarc->spf([ { domain => $row->{spf}{domain}, scope => $row->{spf}{scope}, result => $row->{spf}{result} } ]);
    $dmarc->validate(); $dmarc->save_aggregate() or die "nothing was stored for $row->{ip}";
  }
}
`;

/** A reporter: it looks at the messages and sends its reports. */
export interface Reporter {
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
