import type { HealthFinding, HealthSeverity, HealthStatus } from "../../dmarc/insight/health/health-finding.ts";
import type { DomainHealth, HealthSection } from "../../dmarc/insight/health/health-sections.ts";
import type { Kind } from "../components/badge.tsx";
import { countText } from "../components/number.tsx";

/** What a section is about: its title and a line of explanation. */
export const SECTION_WORDS: Readonly<Record<HealthSection["code"], readonly [title: string, about: string]>> = {
  spf: ["SPF", "which servers may send with this domain as envelope sender"],
  dkim: ["DKIM", "the keys that signatures of this domain are verified with"],
  mx: ["MX", "the hosts that receive mail for this domain"],
  mta_sts: ["MTA-STS", "whether senders must use TLS to reach you"],
  tls_rpt: ["TLS-RPT", "where senders report failed TLS connections to you"],
  bimi: ["BIMI", "the logo that mailbox providers may show"],
  dmarc: ["DMARC", "what receivers do with mail that fails SPF and DKIM"],
};

const SECTION_ORDER: readonly HealthSection["code"][] = ["spf", "dkim", "mx", "mta_sts", "tls_rpt", "bimi", "dmarc"];

/** The sections in the order of the page. */
export const orderedSections = ({ sections }: Pick<DomainHealth, "sections">): readonly HealthSection[] =>
  sections.toSorted((a, b) => SECTION_ORDER.indexOf(a.code) - SECTION_ORDER.indexOf(b.code));

export const STATUS_WORDS: Readonly<Record<HealthStatus, readonly [kind: Kind, word: string]>> = {
  ok: ["ok", "In order"],
  warnings: ["warn", "Weak"],
  problems: ["bad", "Problems"],
  unknown: ["unknown", "Not known"],
};

export const SEVERITY_WORDS: Readonly<Record<HealthSeverity, readonly [kind: Kind, word: string]>> = {
  error: ["bad", "Error"],
  warning: ["warn", "Warning"],
  info: ["info", "Note"],
};

const SEVERITIES: readonly HealthSeverity[] = ["error", "warning", "info"];

/** The worst first. */
export const orderedFindings = (findings: readonly HealthFinding[]): readonly HealthFinding[] =>
  findings.toSorted((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));

/** What the last run found, in a sentence. */
export const healthSentence = ({ sections }: Pick<DomainHealth, "sections">): string => {
  const count = (wanted: HealthSeverity): number =>
    sections.reduce((sum, { findings }) => sum + findings.filter(({ severity }) => severity === wanted).length, 0);
  const [errors, warnings] = [count("error"), count("warning")];
  const unknown = sections.filter(({ unchecked }) => unchecked.length > 0).length;
  const parts = [
    ...(errors > 0 ? [countText(errors, "error")] : []),
    ...(warnings > 0 ? [countText(warnings, "warning")] : []),
  ];
  const found = parts.length === 0 ? "No errors or warnings" : `${parts.join(" and ")} to look at`;
  return unknown === 0 ? found : `${found}; ${countText(unknown, "section")} could not be checked completely`;
};
