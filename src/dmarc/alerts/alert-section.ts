import type { z } from "zod";
import { action, line, list, type MailBlock, type MailItem, type MailSection } from "../../notify/mail-content.ts";
import { cutLine, minuteTime, oneLine, plural, shortName } from "../../notify/mail-text.ts";
import { ALERT_RULES, type AlertRule } from "../domains/raise.ts";
import { ALERT_DATA, type AlertData, readAlertBody } from "./alert-data.ts";
import {
  changeCommand,
  type DomainLink,
  publishActions,
  readDomainCommand,
  recordToPublish,
  sourcePath,
  verifyCommand,
} from "./domain-commands.ts";
import type { QueuedAlert } from "./mail-queue-store.ts";

/** An alert as a section of a mail; its heading names the domain. */
export interface AlertSection extends MailSection {
  readonly domain: string;
  readonly domainId: string;
}

/** What the blocks of an alert refer to. */
interface AlertContext extends DomainLink {
  readonly domain: string;
}

type Blocks = readonly (MailBlock | null)[];

const ITEMS_MAX = 10;
const ITEM_CHARACTERS_MAX = 500;

/** The section of a queued alert; null when the alert or its domain was deleted meanwhile. */
export const alertSection = (queued: QueuedAlert, baseUrl: string): AlertSection | null => {
  const { atMs, body, domain, domainId, label } = queued;
  const rule = ALERT_RULES.find((known) => known === queued.rule);
  if (rule === undefined || atMs === null || body === null || domain === null || domainId === null) return null;
  const { summary, data } = readAlertBody(body);
  const sentence = oneLine(summary);
  const when = minuteTime(atMs);
  return {
    ...{ domain, domainId },
    heading: namesDomain(sentence, domain) ? sentence : `${domain}: ${sentence}`,
    blocks: [
      ...BLOCKS[rule](data, { domain, baseUrl, domainId }),
      line(label === null ? when : `${shortName(label)}, ${when}`, "muted"),
    ],
  };
};

/** Whether a sentence begins with the domain itself, not with a name below it. */
const namesDomain = (sentence: string, domain: string): boolean =>
  sentence.startsWith(domain) && !/^[\w.-]/.test(sentence.slice(domain.length).replace(/^\.(?=\s|$)/, ""));

const items = (texts: readonly MailItem[], total = texts.length): MailBlock | null =>
  list(
    null,
    texts.map(({ text, lines = [] }) => ({
      text: cutLine(text, ITEM_CHARACTERS_MAX),
      lines: lines.map((each) => cutLine(each, ITEM_CHARACTERS_MAX)),
    })),
    { max: ITEMS_MAX, total },
  );

const texts = (...all: readonly string[]): MailBlock | null => items(all.map((text) => ({ text })));

/** The blocks of an alert by its data; none where the data is of another version, for a mail must not fail on that. */
const blocksOf =
  <T>(schema: z.ZodType<T>, write: (data: T, context: AlertContext) => Blocks) =>
  (data: unknown, context: AlertContext): Blocks => {
    const read = schema.safeParse(data);
    return read.success ? write(read.data, context) : [];
  };

const BLOCKS: Readonly<Record<AlertRule, (data: unknown, context: AlertContext) => Blocks>> = {
  status_changed: blocksOf(ALERT_DATA.status_changed, ({ status, checks }, context) => [
    texts(...checks.filter(({ ok }) => ok === false).map(({ message }) => message)),
    ...(status === "active" ? [] : publishActions(context, context.domain, recordToPublish(checks))),
  ]),

  record_changed: blocksOf(ALERT_DATA.record_changed, ({ previous_record: before, record }, context) => [
    before === record ? null : texts(`Before: ${before ?? "no record"}`, `Now: ${record ?? "no record"}`),
    before === null || record !== null
      ? null
      : action(`To restore it, publish this TXT record at _dmarc.${context.domain}:`, before),
    action(
      "If you did not make this change, somebody else can change your DNS. Earlier changes:",
      readDomainCommand(context, "/history"),
    ),
  ]),

  policy_weakened: blocksOf(ALERT_DATA.policy_weakened, ({ trigger, record, reported }, context) => {
    const found = reported === undefined ? [] : [`Found by: ${reported.reporters.map(shortName).join(", ")}`];
    return [
      texts(...found, `Record at the last check: ${record ?? "none"}`),
      trigger === "reports"
        ? action(
            "The weaker record was published between two checks. If you did not publish it, find out who can change your DNS, and whether all name servers of the domain serve the same record. What the checks found:",
            readDomainCommand(context, "/history"),
          )
        : action(
            "More forged mail is delivered now. If you did not make this change, publish the previous record again. It is in the history:",
            readDomainCommand(context, "/history"),
          ),
    ];
  }),

  new_source: blocksOf(ALERT_DATA.new_source, ({ count, sources }, context) => [
    items(
      sources.map((source) => ({ text: `${sourceName(source)}: ${passed(source)}` })),
      count,
    ),
    classifyAction(sources, context),
  ]),

  new_subdomain: blocksOf(ALERT_DATA.new_subdomain, ({ count, names }, context) => [
    items(
      names.map((name) => ({ text: `${shortName(name.name)}: ${passed(name)}` })),
      count,
    ),
    action(
      "If it is not yours, somebody else uses your domain. np=reject protects names that do not exist. Your next step:",
      readDomainCommand(context, "/advice"),
    ),
  ]),

  failure_spike: blocksOf(ALERT_DATA.failure_spike, ({ state, sources }, context) => [
    items(
      sources.map((source) => ({
        text: `${sourceName(source)}: ${source.failing} of ${plural(source.messages, "message")} failed DMARC`,
        lines: source.causes.map(({ message }) => message),
      })),
    ),
    state === "ended"
      ? null
      : action(
          "The failing records with the results of receivers:",
          readDomainCommand(context, "/records?aligned=false"),
        ),
  ]),

  spoofing_campaign: blocksOf(ALERT_DATA.spoofing_campaign, ({ messages, rejected, quarantined }, context) => [
    texts(`Receivers rejected ${rejected} and quarantined ${quarantined} of these messages.`),
    // Receivers apply the policy already: nothing is left to do.
    (rejected + quarantined) * 2 >= messages
      ? null
      : action("With p=reject, receivers refuse such mail. Your next step:", readDomainCommand(context, "/advice")),
  ]),

  reports_stopped: blocksOf(ALERT_DATA.reports_stopped, (_, context) => [
    action("Check that the DMARC record still has the reporting address in rua:", verifyCommand(context)),
  ]),

  tls_failures: blocksOf(ALERT_DATA.tls_failures, (data, context) => {
    const { state, advice, policy_type: type, reporters, mx_hosts: hosts } = data;
    if (state === "ended") return [];
    return [
      texts(
        advice,
        ...(type === null ? [] : [`Policy: ${type}`]),
        ...(reporters.length === 0 ? [] : [`Reported by ${reporters.map(shortName).join(", ")}`]),
        ...hosts.map(({ host, sessions }) => `${host}: ${plural(sessions, "session")} failed`),
      ),
      action("The TLS reports:", readDomainCommand(context, "/tls-reports")),
    ];
  }),
};

type EventSource = AlertData<"new_source">["sources"][number];

const sourceName = ({ name, service, classification }: EventSource): string => {
  const known = service === null || service === name ? "" : ` (${shortName(service)})`;
  return `${shortName(name)}${known}, ${classification}`;
};

const passed = ({ messages, aligned }: { readonly messages: number; readonly aligned: number }): string =>
  `${plural(messages, "message")}, ${aligned} passed DMARC`;

const classifyAction = (sources: readonly EventSource[], context: AlertContext): MailBlock => {
  const [only, ...others] = sources;
  const path = only === undefined || others.length > 0 ? null : sourcePath(only.key);
  return path === null
    ? action("Classify each source. All sources:", readDomainCommand(context, "/sources"))
    : action("If it is yours, classify it:", changeCommand(context, path, { classification: "authorized" }));
};
