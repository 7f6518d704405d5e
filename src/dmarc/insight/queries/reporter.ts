import { z } from "zod";
import { flagField, nullableText } from "../../../foundation/http/schema-fields.ts";
import { UNAUTHENTICATED } from "../../reports/ingest/rollup.ts";
import { type DomainReporters, unvouchedWords } from "../../records/domains/reporter-store.ts";
import { organisationOf } from "../sources/source-identity.ts";

/** Who sent a report, as far as that is known. */
export const reporterSchema = z
  .object({
    name: nullableText(
      "Who sent the report: for a trusted reporter the name in its reports, otherwise the organization that its mail is authenticated as; null when it is not authenticated.",
    ),
    claimed_name: nullableText(
      "The name in the reports of an untrusted reporter; null for a trusted one, or when there is none.",
    ),
    authenticated_as: nullableText(
      "The organizational domain that SPF, DKIM and DMARC authenticate its mail as; null when they do not, when the report was uploaded without its mail, and when reports arrived in several ways.",
    ),
    trusted: flagField(
      "Whether the mail is authenticated as the reporter's, or you uploaded or accepted the report. Advice counts trusted reports only.",
    ),
  })
  .meta({ title: "DmarcReporter" });

export type ShownReporter = Readonly<z.infer<typeof reporterSchema>>;

/** A reporter as it is stored. */
interface StoredReporter {
  /** The name in its reports; null where they give none. */
  readonly org: string | null;
  /** Of an untrusted reporter: the domain that authenticated its mail, or `UNAUTHENTICATED`; empty for a trusted one. */
  readonly author: string;
  /** The organization that authenticated the mail of a trusted reporter. */
  readonly authenticatedAs: string | null;
}

/** A reporter as the API returns it. */
export const reporterView = ({ org, author, authenticatedAs }: StoredReporter): ShownReporter => {
  if (author === "") return { name: org, claimed_name: null, authenticated_as: authenticatedAs, trusted: true };
  const known = author === UNAUTHENTICATED ? null : author;
  return { name: known, claimed_name: org, authenticated_as: known, trusted: false };
};

/** The organizational domain of the header_from domain of authenticated mail. */
export const authenticatedOrganisation = (from: string | null): string | null =>
  from === null ? null : organisationOf(from);

/** A reporter in a few words: `attacker.example (claims to be google.com)`. */
export const reporterWords = ({ name, claimed_name: claimed, trusted }: ShownReporter): string => {
  if (trusted) return name ?? "a reporter without a name";
  if (name === null) return `${claimed ?? "a reporter without a name"} (not authenticated)`;
  return claimed === null ? `${name} (claims no name)` : `${name} (claims to be ${claimed})`;
};

/** Counts of a range of days, and how much of them is in untrusted reports only. */
interface TrustFigures {
  readonly reports: number;
  readonly messages: number;
  readonly untrustedReports: number;
  readonly untrustedMessages: number;
  /** The unknown reporters of the domain. */
  readonly unknown?: DomainReporters["unknown"];
}

const HUNDRED = 100;
const share = (part: number, whole: number) => `${Math.round((part * HUNDRED * 10) / whole) / 10} %`;

/** What unknown reporters reported in a range of days. */
export interface UnknownFigures {
  /** Whether known reporters decide alone. */
  readonly isCovered: boolean;
  readonly reporters: number;
  readonly messages: number;
}

/** How much of the figures comes from unknown reporters, in one sentence; null when nothing does. */
export const unknownReporterSentence = ({
  isCovered,
  reporters,
  messages,
  ofMessages,
}: UnknownFigures & { readonly ofMessages: number }): string | null => {
  if (reporters === 0) return null;
  const who = reporters === 1 ? "1 unknown reporter" : `${reporters} unknown reporters`;
  const mail = `${messages.toLocaleString("en-US")} of ${ofMessages.toLocaleString("en-US")} messages`;
  const rule = isCovered
    ? "They are counted here; advice and alerts ignore them, because known reporters cover the domain."
    : "Known reporters do not cover the domain, so advice counts them, but relies on none of them alone.";
  return `${mail} are in reports of ${who}: anybody with a domain can be one. ${rule}`;
};

/** How much of the figures comes from untrusted reports, in one sentence; null when nothing does. */
export const trustSentence = (figures: TrustFigures): string | null => {
  const { reports, messages, untrustedReports, untrustedMessages } = figures;
  if (untrustedReports === 0) return null;
  const number = (value: number) => value.toLocaleString("en-US");
  const mail =
    messages === 0
      ? ""
      : `, with ${number(untrustedMessages)} of ${number(messages)} messages (${share(untrustedMessages, messages)}),`;
  return `${number(untrustedReports)} of ${number(reports)} reports${mail} came in mail that ${unvouchedWords({ unknown: figures.unknown ?? [] })}. They are counted here; advice ignores them.`;
};
