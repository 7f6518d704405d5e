import { type Command, Option } from "commander";
import { isId } from "../foundation/base/secrets.ts";
import { parseMonitoredDomain } from "../dmarc/records/domains/domain-platform.ts";
import { DIGESTS, DOMAIN_STATUSES, type DomainRow } from "../dmarc/records/domains/domain-store.ts";
import type { DomainSettingsChange, DomainView } from "../dmarc/records/domains/domains.ts";
import type { DnsRecordView } from "../dmarc/records/domains/publication.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../notifications/webhooks/url-store.ts";
import { type AccountOptions, addCommand, addGroup, ofAccount, readLimit } from "./command.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { type CommandService, withService } from "./service.ts";
import { table, tableTime } from "./terminal-text.ts";

const SHOWN_DEFAULT = 100;
const SHOWN_MAX = 10_000;
const HEADINGS = ["DOMAIN", "STATUS", "POLICY", "REPORTS", "LAST REPORT", "MONITORING", "LABEL"];

const rowOf = (view: DomainView): string[] => [
  ...[view.domain, view.status, view.policy?.p ?? "none", view.reporting],
  ...[tableTime(view.last_report_at, "never"), view.monitoring_enabled ? "on" : "paused", view.label ?? ""],
];

/** A DNS record to publish, with what to do about it. */
const recordLines = ({ host, action, value, message }: DnsRecordView): string[] => [
  message,
  ...(action === "create" || action === "update" ? [`  ${host}  TXT  "${value}"`] : []),
];

const domainText = (view: DomainView, records: readonly DnsRecordView[], { columns }: Io): string =>
  [
    table(HEADINGS, [rowOf(view)], columns),
    ...(view.reporting_address === null ? [] : [`Reporting address: ${view.reporting_address}`]),
    ...records.flatMap(recordLines),
  ].join("\n");

/** The domain of the account by its name or id. */
export const findDomain = ({ service: { dmarc }, caller }: CommandService, text: string): DomainRow => {
  if (isId(text)) return dmarc.domains.find(caller, text);
  const parsed = parseMonitoredDomain(text, caller.mode);
  if (!parsed.ok) throw new UsageError(`"${text}": ${parsed.error}`, "domain");
  const [found] = dmarc.domains.list(caller, { domain: parsed.value }, { before: null, limit: 1 });
  if (found !== undefined) return found;
  throw new CommandFailed(
    `${parsed.value} is not enrolled. \`postwarden dmarc domains add ${parsed.value}\` enrolls it.`,
    "unknown_domain",
  );
};

/** `dmarc domains list | add | show | verify | update | remove` */
export const addDomainCommands = (dmarc: Command, io: Io): void => {
  const group = addGroup(dmarc, "domains", {
    description: "Enroll, show, change and delete the domains that an account monitors.",
    example: "dmarc domains add example.com --account acme",
  });
  addDomainList(group, io);
  addDomainAdd(group, io);
  addDomainShow(group, io);
  addDomainVerify(group, io);
  addDomainUpdate(group, io);
  addDomainRemove(group, io);
};

interface ListOptions extends AccountOptions {
  readonly status?: (typeof DOMAIN_STATUSES)[number];
  readonly limit: string;
}

const addDomainList = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "list", { description: "List domains, newest first.", example: "dmarc domains list" }),
    "domains",
  )
    .addOption(new Option("--status <status>", "only this status").choices([...DOMAIN_STATUSES]))
    .option("--limit <n>", `how many, up to ${SHOWN_MAX}`, String(SHOWN_DEFAULT))
    .action((options: ListOptions) => {
      const page = { before: null, limit: readLimit(options.limit, SHOWN_MAX) };
      return withService(io, options, async ({ service: { dmarc }, caller }) => {
        const domains = dmarc.domains
          .list(caller, { status: options.status }, page)
          .map((row) => dmarc.domains.view(row));
        print(io, options.json, { domains }, () => table(HEADINGS, domains.map(rowOf), io.columns));
      });
    });

interface SettingOptions extends AccountOptions {
  readonly label?: string;
  readonly webhookUrl?: string;
  readonly recipient?: readonly string[];
}

const withSettings = (command: Command): Command =>
  ofAccount(command, "domains")
    .option("--label <text>", "your own text about the domain")
    .option("--webhook-url <url>", "URL for events about the domain")
    .option("--recipient <address...>", "addresses for alert mail and digests");

const readWebhookUrl = ({ config }: CommandService, url: string): string => {
  const read = webhookUrlSchema(createUrlPolicy(config.webhookAllowNetworks)).safeParse(url);
  if (read.success) return read.data;
  throw new UsageError(`--webhook-url: ${read.error.issues[0]?.message ?? "not a URL"}`, "webhook_url");
};

const addDomainAdd = (group: Command, io: Io): Command =>
  withSettings(
    addCommand(group, "add", {
      description: "Enroll a domain and print the DNS record to publish.",
      example: "dmarc domains add example.com --recipient ops@example.com",
    }),
  )
    .argument("<domain>", "domain in the From address of mails")
    .action((domain: string, options: SettingOptions) =>
      withService(io, options, async (command) => {
        const { service, caller, perform } = command;
        const { domains } = service.dmarc;
        const { label = null, webhookUrl, recipient = [] } = options;
        const wanted = {
          ...{ domain, label, recipients: recipient },
          webhookUrl: webhookUrl === undefined ? null : readWebhookUrl(command, webhookUrl),
        };
        const done = { action: "dmarc.domains.add", subject: domain };
        const enrolled = await perform(
          done,
          () => domains.enrol(caller, wanted),
          ({ created }) => created,
        );
        const view = domains.view(enrolled.domain);
        const { created, dnsRecords: dns_records } = enrolled;
        print(io, options.json, { created, domain: view, dns_records }, () =>
          [...(created ? [] : ["The domain was enrolled already."]), domainText(view, dns_records, io)].join("\n"),
        );
      }),
    );

const addDomainShow = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "show", {
      description: "Show a domain, its settings and the DNS records to publish.",
      example: "dmarc domains show example.com",
    }),
    "domains",
  )
    .argument("<domain>", "enrolled domain or its id")
    .action((text: string, options: AccountOptions) =>
      withService(io, options, async (command) => {
        const { domains } = command.service.dmarc;
        const row = findDomain(command, text);
        const { dnsRecords: dns_records, serviceRecords: service_records } = await domains.dns(command.caller, row.id);
        const view = domains.view(row);
        print(io, options.json, { domain: view, dns_records, service_records }, () =>
          domainText(view, dns_records, io),
        );
      }),
    );

const addDomainVerify = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "verify", {
      description: "Check the DNS of a domain now and update its status.",
      example: "dmarc domains verify example.com",
    }),
    "domains",
  )
    .argument("<domain>", "enrolled domain or its id")
    .action((text: string, options: AccountOptions) =>
      withService(io, options, async (command) => {
        const { domains } = command.service.dmarc;
        const { id, domain: name } = findDomain(command, text);
        const done = { action: "dmarc.domains.check", subject: name };
        const verified = await command.perform(done, () => domains.verify(command.caller, id));
        const { domain, previousStatus: previous_status, result } = verified;
        const view = domains.view(domain);
        const { checks, dnsRecords: dns_records } = result;
        print(io, options.json, { domain: view, previous_status, checks, dns_records }, () =>
          domainText(view, dns_records, io),
        );
      }),
    );

interface UpdateOptions extends SettingOptions {
  readonly digest?: (typeof DIGESTS)[number];
  readonly monitoring?: "on" | "off";
  readonly retentionDays?: string;
}

const changeOf = (command: CommandService, options: UpdateOptions): DomainSettingsChange => {
  const { label, webhookUrl, recipient, digest, monitoring, retentionDays } = options;
  return {
    ...(label === undefined ? {} : { label: label === "" ? null : label }),
    ...(webhookUrl === undefined ? {} : { webhookUrl: webhookUrl === "" ? null : readWebhookUrl(command, webhookUrl) }),
    ...(recipient === undefined ? {} : { recipients: recipient.filter((address) => address !== "") }),
    ...(digest === undefined ? {} : { digest }),
    ...(monitoring === undefined ? {} : { monitoringEnabled: monitoring === "on" }),
    ...(retentionDays === undefined ? {} : { retentionDays: readDays(retentionDays) }),
  };
};

const DAYS_MAX = 3_650;
const readDays = (text: string): number => {
  const days = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= DAYS_MAX) return days;
  throw new UsageError(`--retention-days: "${text}" is not a whole number from 1 to ${DAYS_MAX}.`, "retention_days");
};

const addDomainUpdate = (group: Command, io: Io): Command =>
  withSettings(
    addCommand(group, "update", {
      description: 'Change the settings of a domain; "" removes a label, a URL or the recipients.',
      example: "dmarc domains update example.com --digest weekly --recipient ops@example.com",
    }),
  )
    .argument("<domain>", "enrolled domain or its id")
    .addOption(new Option("--digest <period>", "how often a digest is mailed").choices([...DIGESTS]))
    .addOption(new Option("--monitoring <state>", "whether scheduled DNS checks run").choices(["on", "off"]))
    .option("--retention-days <n>", "how long reports are stored")
    .action((text: string, options: UpdateOptions) =>
      withService(io, options, async (command) => {
        const { domains } = command.service.dmarc;
        const change = changeOf(command, options);
        if (Object.keys(change).length === 0) throw new UsageError("Name at least one setting to change.");
        const before = findDomain(command, text);
        const after = { changed: Object.keys(change) };
        const done = { action: "dmarc.domains.update", subject: before.domain, after };
        const changed = await command.perform(done, () => domains.change(command.caller, before.id, change));
        const view = domains.view(changed);
        print(io, options.json, view, () => domainText(view, [], io));
      }),
    );

const addDomainRemove = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "remove", {
      description: "Delete a domain with its reports; mail to its reporting address is refused from now on.",
      example: "dmarc domains remove example.com",
    }),
    "domains",
  )
    .argument("<domain>", "enrolled domain or its id")
    .action((text: string, options: AccountOptions) =>
      withService(io, options, async (command) => {
        const { id, domain } = findDomain(command, text);
        const done = { action: "dmarc.domains.remove", subject: domain };
        await command.perform(done, () => command.service.dmarc.domains.remove(command.caller, id));
        print(io, options.json, { removed: domain }, () => `Removed ${domain}.`);
      }),
    );
