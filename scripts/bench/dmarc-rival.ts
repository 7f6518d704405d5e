import { join, resolve } from "node:path";
import { ensureReporters } from "../lab/packages.ts";
import type { Stage } from "./stage.ts";

const CACHE = resolve(import.meta.dir, "../../node_modules/.cache/postwarden-lab");
/** The duration of the rival's run, which then stops by itself. */
const SECONDS = 20;

const SCRIPT = `use strict; use warnings; use Time::HiRes 'time'; use Mail::DMARC::Report::Receive;
my ($directory, $seconds) = @ARGV; my ($count, $begin) = (0, time);
my $receive = Mail::DMARC::Report::Receive->new();
open my $out, '>&', \\*STDOUT; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
for my $file (sort glob "$directory/*.eml") { last if time - $begin > $seconds; $receive->from_file($file); $count++; }
my $stored = $receive->report->store->backend->query('SELECT count(*) AS n FROM report_record')->[0]{n};
print $out join(' ', $count, time - $begin, $stored), "\\n";
`;

const CONFIGURATION = (directory: string): string => `[organization]
domain = bench-lab.com
org_name = Bench
email = dmarc@bench-lab.com
[report_store]
backend = SQL
dsn = dbi:SQLite:dbname=${directory}/rival.sqlite
user =
pass =
[dns]
public_suffix_list = /usr/share/publicsuffix/public_suffix_list.dat
[smtp]
hostname = mail.bench-lab.com
`;

/** Mail::DMARC stores the mails of a directory into SQLite, as many as it can in 20 s. */
export const measureRival = async (
  { supervisor, directory }: Stage,
  mails: string,
): Promise<{ readonly perSecond: number; readonly reports: number; readonly rows: number }> => {
  await ensureReporters(supervisor, CACHE);
  const config = join(directory, "rival.ini");
  const script = join(directory, "rival.pl");
  await Bun.write(config, CONFIGURATION(directory));
  await Bun.write(script, SCRIPT);
  const said = await supervisor.run(["perl", script, mails, String(SECONDS)], {
    env: { MAIL_DMARC_CONFIG_FILE: config },
  });
  const [reports = 0, seconds = 0, rows = 0] = said.trim().split(" ").map(Number);
  return { perSecond: reports / seconds, reports, rows };
};
