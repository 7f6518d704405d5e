import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { dnsServersOf, systemPlatform } from "../compose-engine.ts";
import type { Config } from "../config.ts";
import { openDb } from "../db/open.ts";
import { parseAddress } from "../mail/address.ts";
import { type DnsOutcome, type DnsResponse, type DnsResolver, formatServer, isDefinite } from "../net/dns.ts";
import { reverseQueryName } from "../net/reverse-name.ts";
import { describeMigrateProblem } from "../db/migrate.ts";
import { check, type DoctorCheck } from "./doctor-check.ts";
import { checkBlocklists } from "./doctor-blocklists.ts";
import { checkPort } from "./doctor-egress.ts";
import { checkNetworks } from "./doctor-networks.ts";
import { checkNotify } from "./doctor-notify.ts";
import { checkReports } from "./doctor-reports.ts";
import { CommandFailed, type Io, print } from "./io.ts";
import { table } from "./terminal-text.ts";
import { loadConfig, prepareDatabase } from "./data-directory.ts";

const checkDatabase = (io: Io, config: Config): DoctorCheck => {
  try {
    const path = prepareDatabase(io, config, "fail");
    const opened = openDb(path);
    if (!opened.ok) return check("database", "fail", describeMigrateProblem(opened.error));
    const isWritable = opened.value.isWritable();
    const damage = opened.value.damage();
    opened.value.close();
    if (damage !== null) return check("database", "fail", `${path} is damaged: ${damage}. Restore a backup.`);
    return isWritable
      ? check("database", "ok", `${path} can be written.`)
      : check("database", "fail", `${path} cannot be written at the moment.`);
  } catch (error) {
    if (error instanceof CommandFailed)
      return error.code === "no_database"
        ? check("database", "warn", `${error.message} \`serve\` creates a new one.`)
        : check("database", "fail", error.message);
    const reason = error instanceof Error ? error.message : String(error);
    return check("database", "fail", `${config.dataDir}: ${reason}.`);
  }
};

const checkDns = async (config: Config, resolver: DnsResolver, domain: string): Promise<DoctorCheck> => {
  const servers = dnsServersOf(config).map(formatServer).join(", ");
  const reply = await resolver.resolve(domain, "MX");
  if (reply.outcome === "answer")
    return check("dns", "ok", `${servers} answers (MX of ${domain}, ${reply.elapsedMs} ms).`);
  if (reply.outcome === "nxdomain" || reply.outcome === "no_data")
    return check("dns", "warn", `${servers} answers, but ${domain} has no MX record. Name another one with --domain.`);
  return check(
    "dns",
    "fail",
    `${servers}: MX of ${domain} gives ${reply.outcome}. Set POSTWARDEN_DNS_SERVERS to a resolver that answers.`,
  );
};

export const checkHelo = async (
  { heloName }: Pick<Config, "heloName">,
  resolver: DnsResolver,
): Promise<DoctorCheck> => {
  const advice =
    "Set POSTWARDEN_HELO_NAME to this machine's public name; its A record and the address's PTR should match.";
  if (heloName.startsWith("["))
    return check("helo", "warn", `HELO says ${heloName}, an address literal; many servers refuse that. ${advice}`);
  if (!heloName.includes("."))
    return check("helo", "fail", `HELO says "${heloName}", which is no full host name. ${advice}`);
  const [v4, v6] = await Promise.all([resolver.resolve(heloName, "A"), resolver.resolve(heloName, "AAAA")]);
  const addresses = [...v4.records, ...v6.records];
  if (addresses.length === 0) {
    const failed = failureOf([v4, v6]);
    return failed === null
      ? check("helo", "fail", `${heloName} has no address (${v4.outcome}). ${advice}`)
      : check("helo", "warn", `The DNS could not say which address ${heloName} has (${failed}).`);
  }
  const reverse = await Promise.all(addresses.map((address) => resolver.resolve(reverseQueryName(address), "PTR")));
  if (reverse.some((reply) => reply.records.includes(heloName.toLowerCase())))
    return check("helo", "ok", `${heloName} is ${addresses.join(", ")}, and back.`);
  const failed = failureOf(reverse);
  const found = `${heloName} is ${addresses.join(", ")}`;
  return failed === null
    ? check("helo", "warn", `${found}, but no PTR record leads back to it. ${advice}`)
    : check("helo", "warn", `${found}; the DNS could not say whether a PTR record leads back to it (${failed}).`);
};

/** How the first of these questions failed that has no definite answer; null when all have one. */
const failureOf = (replies: readonly DnsResponse[]): DnsOutcome | null =>
  replies.find(({ outcome }) => !isDefinite(outcome))?.outcome ?? null;

export const checkSender = async (
  { mailFrom }: Pick<Config, "mailFrom">,
  resolver: DnsResolver,
): Promise<DoctorCheck> => {
  if (mailFrom === "")
    return check("mail_from", "ok", "The null sender <>, as in bounces. A few servers refuse it: see the README.");
  const address = parseAddress(mailFrom);
  if (!address.ok) return check("mail_from", "fail", `${mailFrom} is no address.`);
  const { domain } = address.value;
  const types = ["MX", "A", "AAAA"] as const;
  const replies = await Promise.all(types.map((type) => resolver.resolve(domain, type)));
  if (replies.some(({ outcome }) => outcome === "answer"))
    return check("mail_from", "ok", `${mailFrom}: its domain takes mail.`);
  const failed = failureOf(replies);
  return failed === null
    ? check("mail_from", "fail", `${mailFrom}: its domain has neither MX nor A nor AAAA, so servers will refuse it.`)
    : check("mail_from", "warn", `The DNS could not say whether the domain of ${mailFrom} takes mail (${failed}).`);
};

/** `doctor`: can this machine do the work, and what to do about it if not. Exit status 1 when something fails. */
export const addDoctorCommand = (program: Command, io: Io): void => {
  program
    .command("doctor")
    .description(
      "checks database, DNS, HELO name, sender, outgoing SMTP, the way of DMARC reports, the look-up of networks, blocklists and the relay for alert mail, and says how to mend them",
    )
    .option("--domain <domain>", "a domain whose mail host is greeted, to see whether SMTP gets out", "gmail.com")
    .option("--json", "print JSON")
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
