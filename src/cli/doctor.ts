import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { dnsServersOf, systemPlatform } from "../compose-platform.ts";
import type { Config } from "../config.ts";
import { openDb } from "../db/open.ts";
import { parseAddress } from "../mail/address.ts";
import { type DnsOutcome, type DnsResponse, type DnsResolver, formatServer, isDefinite } from "../net/dns.ts";
import { reverseQueryName } from "../net/dns-name.ts";
import { describeMigrateProblem } from "../db/migrate.ts";
import { addCommand } from "./command.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import { checkBlocklists } from "./doctor-blocklists.ts";
import { checkPort } from "./doctor-egress.ts";
import { checkNetworks } from "./doctor-networks.ts";
import { checkNotify } from "./doctor-notify.ts";
import { checkReports } from "./doctor-reports.ts";
import { CommandFailed, type Io, print } from "./io.ts";
import { table } from "./terminal-text.ts";
import { loadConfig, prepareDatabase } from "./data-directory.ts";

const databaseCheck = doctorFindings("database");
const dnsCheck = doctorFindings("dns");
const heloCheck = doctorFindings("helo");
const mailFromCheck = doctorFindings("mail_from");

const checkDatabase = (io: Io, config: Config): DoctorCheck => {
  try {
    const path = prepareDatabase(io, config, "fail");
    const opened = openDb(path);
    if (!opened.ok) return databaseCheck.fail(describeMigrateProblem(opened.error));
    const isWritable = opened.value.isWritable();
    const damage = opened.value.damage();
    opened.value.close();
    if (damage !== null) return databaseCheck.fail(`${path} is damaged: ${damage}. Restore a backup.`);
    return isWritable
      ? databaseCheck.ok(`${path} is writable.`)
      : databaseCheck.fail(`${path} is not writable. Check the free disk space and which processes use the file.`);
  } catch (error) {
    if (error instanceof CommandFailed)
      return error.code === "no_database"
        ? databaseCheck.warn(`${error.message} \`postwarden serve\` creates a new one.`)
        : databaseCheck.fail(error.message);
    const reason = error instanceof Error ? error.message : String(error);
    return databaseCheck.fail(`${config.dataDir}: ${reason}.`);
  }
};

const checkDns = async (config: Config, resolver: DnsResolver, domain: string): Promise<DoctorCheck> => {
  const servers = dnsServersOf(config).map(formatServer).join(", ");
  const reply = await resolver.resolve(domain, "MX");
  if (reply.outcome === "answer") return dnsCheck.ok(`${servers} responds (MX of ${domain}, ${reply.elapsedMs} ms).`);
  if (reply.outcome === "nxdomain" || reply.outcome === "no_data")
    return dnsCheck.warn(`${servers} responds, but ${domain} has no MX record. Name another domain with --domain.`);
  return dnsCheck.fail(
    `The MX query for ${domain} to ${servers} failed: ${reply.outcome}. Set POSTWARDEN_DNS_SERVERS to a resolver that responds.`,
  );
};

export const checkHelo = async (
  { heloName }: Pick<Config, "heloName">,
  resolver: DnsResolver,
): Promise<DoctorCheck> => {
  const advice = "Set POSTWARDEN_HELO_NAME to this machine's public host name, with matching A and PTR records.";
  if (heloName.startsWith("["))
    return heloCheck.warn(`The HELO name ${heloName} is an address literal, which many servers refuse. ${advice}`);
  if (!heloName.includes("."))
    return heloCheck.fail(`The HELO name "${heloName}" is not a fully qualified host name. ${advice}`);
  const [v4, v6] = await Promise.all([resolver.resolve(heloName, "A"), resolver.resolve(heloName, "AAAA")]);
  const addresses = [...v4.records, ...v6.records];
  if (addresses.length === 0) {
    const failed = failureOf([v4, v6]);
    return failed === null
      ? heloCheck.fail(`${heloName} has no A or AAAA record (${v4.outcome}). ${advice}`)
      : heloCheck.warn(`The address query for ${heloName} failed (${failed}).`);
  }
  const reverse = await Promise.all(addresses.map((address) => resolver.resolve(reverseQueryName(address), "PTR")));
  if (reverse.some((reply) => reply.records.includes(heloName.toLowerCase())))
    return heloCheck.ok(`${heloName} resolves to ${addresses.join(", ")}, and a PTR record matches.`);
  const failed = failureOf(reverse);
  const found = `${heloName} resolves to ${addresses.join(", ")}`;
  return failed === null
    ? heloCheck.warn(`${found}, but no PTR record names it. ${advice}`)
    : heloCheck.warn(`${found}; the PTR query failed (${failed}).`);
};

/** The first outcome that is not definite; null when all are. */
const failureOf = (replies: readonly DnsResponse[]): DnsOutcome | null =>
  replies.find(({ outcome }) => !isDefinite(outcome))?.outcome ?? null;

export const checkSender = async (
  { mailFrom }: Pick<Config, "mailFrom">,
  resolver: DnsResolver,
): Promise<DoctorCheck> => {
  if (mailFrom === "")
    return mailFromCheck.ok(
      'The null sender <>, as in bounces. A few servers refuse it; see "Sender reputation" in the README.',
    );
  const address = parseAddress(mailFrom);
  if (!address.ok) return mailFromCheck.fail(`${mailFrom} is not an email address.`);
  const { domain } = address.value;
  const types = ["MX", "A", "AAAA"] as const;
  const replies = await Promise.all(types.map((type) => resolver.resolve(domain, type)));
  if (replies.some(({ outcome }) => outcome === "answer"))
    return mailFromCheck.ok(`The domain of ${mailFrom} accepts mail.`);
  const failed = failureOf(replies);
  return failed === null
    ? mailFromCheck.fail(
        `The domain of ${mailFrom} has no MX, A or AAAA record, so servers will refuse the sender. Set POSTWARDEN_MAIL_FROM to an address that accepts mail.`,
      )
    : mailFromCheck.warn(`The queries for the domain of ${mailFrom} failed (${failed}).`);
};

/** `doctor`: checks this machine and its settings. Exit status 1 when a check fails. */
export const addDoctorCommand = (program: Command, io: Io): void => {
  addCommand(program, "doctor", {
    description:
      "Check database, DNS, HELO name, sender, outgoing SMTP, DMARC report path, network lookups, blocklists and alert relay, and suggest fixes.",
    example: "doctor --env-file /etc/postwarden.env",
  })
    .option("--domain <domain>", "domain whose mail host is used to test outgoing SMTP", "gmail.com")
    .action(async ({ domain, json }: { domain: string; json?: boolean }) => {
      const config = loadConfig(io);
      const platform = systemPlatform(config);
      const { resolver } = platform;
      const found = await Promise.all([
        checkDatabase(io, config),
        checkDns(config, resolver, domain),
        checkHelo(config, resolver),
        checkSender(config, resolver),
        checkPort(config, platform, domain),
        checkReports({ config, resolver, clock: systemClock }),
        checkNetworks({ config, resolver, clock: systemClock }),
        checkNotify({ config, clock: systemClock }),
        checkBlocklists(config, resolver),
      ]);
      const checks = found.flat();
      platform.close();
      print(io, json, { checks }, () =>
        table(
          ["CHECK", "STATE", ""],
          checks.map((row) => [row.check, row.state, row.message]),
        ),
      );
      const failures = checks.filter(({ state }) => state === "fail").length;
      if (failures > 0) throw new CommandFailed(`${failures} of ${checks.length} checks failed.`, "unhealthy");
    });
};
