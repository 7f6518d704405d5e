import { systemClock } from "../foundation/base/clock.ts";
import { openHealthCheck } from "../dmarc/open.ts";
import { freshResolverOf } from "../service/platform.ts";
import { parseMonitoredDomain } from "../dmarc/records/domains/domain-platform.ts";
import type {
  DomainHealth,
  HealthFinding,
  DkimSection,
  HealthSection,
  MxSection,
  SpfSection,
} from "../dmarc/insight/health/health-schema.ts";
import { isSelector, SELECTORS_MAX, type SelectorToCheck } from "../dmarc/insight/health/dkim-key.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { argument, command, option } from "./command.ts";
import { CommandFailed, UsageError } from "./io.ts";
import { loadConfig } from "./prepare-directory.ts";
import { safeLine } from "../foundation/base/visible-text.ts";
import { wrapText } from "./terminal-text.ts";

/** Exit status when not everything could be checked. */
const EXIT_UNKNOWN = 4;

const readDomain = (text: string): string => {
  const live = parseMonitoredDomain(text, "live");
  if (live.ok) return live.value;
  throw new UsageError(live.error, "domain");
};

const readSelectors = (given: readonly string[], signer: string): readonly SelectorToCheck[] => {
  const selectors = [...new Set(given.flatMap((text) => text.toLowerCase().split(",")))];
  const wrong = selectors.find((selector) => !isSelector(selector));
  if (wrong !== undefined) throw new UsageError(`"${wrong}" is not a DKIM selector.`, "selector");
  if (selectors.length > SELECTORS_MAX) throw new UsageError(`Give at most ${SELECTORS_MAX} selectors.`, "selector");
  return selectors.map((selector) => ({ selector, signer, origin: "request", seen: null }));
};

const failOn = ({ domain, status }: DomainHealth): void => {
  if (status === "problems") throw new CommandFailed(`${domain} has problems.`, "problems");
  if (status === "unknown")
    throw new CommandFailed(`Not everything of ${domain} could be checked.`, "unknown", EXIT_UNKNOWN);
};

/** `dmarc health`: checks the DNS records of any domain, without a database. */
export const HEALTH = command({
  description: "Check the SPF, DKIM, DMARC, MX, MTA-STS, TLS-RPT and BIMI records of any domain.",
  example: "dmarc health example.com --selector mail",
  notes: "Exit status: 0 no problems, 1 problems, 4 not everything could be checked.",
  args: { text: argument("<domain>", "domain in the From address of mails") },
  options: { selector: option("<name...>", "DKIM selectors (default: 20 common ones)") },
  async run({ io, print }, { text, selector = [] }) {
    const domain = readDomain(text);
    const selectors = readSelectors(selector, domain);
    const config = loadConfig(io);
    const resolver = freshResolverOf(config);
    try {
      const check = openHealthCheck({ clock: systemClock, resolver }, createUrlPolicy(config.webhookAllowNetworks));
      const health = await check({ domain, selectors });
      print(health, () => healthText(health, io.columns));
      failOn(health);
    } finally {
      resolver.close();
    }
  },
});

const TITLES: Readonly<Record<HealthSection["code"], string>> = {
  dmarc: "DMARC",
  spf: "SPF",
  dkim: "DKIM",
  mx: "MX",
  mta_sts: "MTA-STS",
  tls_rpt: "TLS-RPT",
  bimi: "BIMI",
};
const LABEL_WIDTH = 11;
const WIDTH_MIN = 40;

/** An indented line, wrapped only when it does not fit. */
const indented = (line: string, width: number): string[] => {
  const whole = " ".repeat(LABEL_WIDTH) + safeLine(line);
  return whole.length <= width ? [whole] : labelled("", line, width);
};

/** A text after a label, wrapped at `width` characters. */
const labelled = (label: string, text: string, width: number): string[] => {
  const lines = wrapText(safeLine(text), Math.max(WIDTH_MIN, width) - LABEL_WIDTH);
  return lines.map((line, at) => `${(at === 0 ? label : "").padEnd(LABEL_WIDTH)}${line}`.trimEnd());
};

const findingLines = ({ severity, message, fix }: HealthFinding, width: number): string[] => [
  ...labelled(`  ${severity}`, message, width),
  ...(fix === null ? [] : labelled("", `Fix: ${fix}`, width)),
];

const spfLines = ({ record, lookups, lookups_complete, void_lookups, terms }: SpfSection, width: number): string[] => {
  if (record === null || lookups === null) return [];
  const voids = void_lookups === 0 ? "none" : String(void_lookups);
  const sum = `${lookups_complete ? "" : "at least "}${lookups} DNS lookup${lookups === 1 ? "" : "s"} (10 allowed), ${voids} of them void`;
  const costs = terms
    .filter(({ depth }) => depth < 3)
    .map(({ term, depth, lookups: cost }) => `${"  ".repeat(depth)}${String(cost).padStart(2)}  ${term}`);
  return [
    ...labelled("", record, width),
    ...labelled("", sum, width),
    ...costs.flatMap((line) => indented(line, width)),
  ];
};

const keyLine = ({ selector, state, type, bits, cname, messages }: DkimSection["keys"][number]): string => {
  const strength = type === null || bits === null ? "" : type === "rsa" ? `RSA ${bits}` : "Ed25519";
  const alias = cname === null ? "" : `CNAME ${cname}`;
  const use =
    messages === null
      ? ""
      : `${messages.passed.toLocaleString("en")} passed, ${messages.failed.toLocaleString("en")} failed`;
  return [selector, state, strength, alias, use].filter((part) => part !== "").join(", ");
};

const hostLine = ({ preference, exchange, addresses, dane }: MxSection["hosts"][number]): string =>
  [`${preference} ${exchange}`, ...(addresses ?? []), ...(dane === "secure" ? ["DANE"] : [])].join(", ");

const detailLines = (section: HealthSection, width: number): string[] => {
  switch (section.code) {
    case "spf":
      return spfLines(section, width);
    case "dkim":
      return section.keys.flatMap((key) => labelled("", keyLine(key), width));
    case "mx":
      return section.hosts.flatMap((host) => labelled("", hostLine(host), width));
    case "dmarc":
    case "mta_sts":
    case "tls_rpt":
    case "bimi":
      return section.record === null ? [] : labelled("", section.record, width);
    default:
      return section satisfies never;
  }
};

const sectionLines = (section: HealthSection, width: number): string[] => [
  `${TITLES[section.code].padEnd(LABEL_WIDTH)}${section.status}`,
  ...detailLines(section, width),
  ...section.findings.flatMap((finding) => findingLines(finding, width)),
  ...section.unchecked.flatMap((sentence) => labelled("  unknown", sentence, width)),
];

/** The health of a domain as text of at most `width` characters per line, with the fix of each finding. */
const healthText = ({ domain, status, sections }: DomainHealth, width: number): string =>
  [`${domain}: ${status}`, ...sections.flatMap((section) => ["", ...sectionLines(section, width)])].join("\n");
