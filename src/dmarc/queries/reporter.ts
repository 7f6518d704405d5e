import { z } from "zod";
import { organisationalDomain } from "../../mail/organisational-domain.ts";
import { UNAUTHENTICATED } from "../ingest/rollup.ts";

/** Who sent a report, as far as that is known. */
export const reporterSchema = z
  .object({
    name: z.string().nullable().meta({
      description:
        "Who it is: for a trusted reporter the name in its reports, else the organization that its mail is authenticated as; null when that is nobody.",
    }),
    claimed_name: z.string().nullable().meta({
      description: "Of one that is not trusted: the name that it gives itself. Null otherwise, and when it gives none.",
    }),
    authenticated_as: z.string().nullable().meta({
      description:
        "The organizational domain that SPF, DKIM and DMARC authenticate its mail as; null when they do not, when it was uploaded as a bare report, and where reports came in several ways.",
    }),
    trusted: z.boolean().meta({
      description:
        "Whether the mail is authenticated as the reporter's, or you uploaded or accepted the report. Advice counts trusted reports only.",
    }),
  })
  .meta({ title: "DmarcReporter" });

export type ShownReporter = Readonly<z.infer<typeof reporterSchema>>;

/** A reporter as it is stored. */
export interface StoredReporter {
  /** The name in its reports; null where they give none. */
  readonly org: string | null;
  /** Of one that is not trusted: who its mail is authenticated as, or `UNAUTHENTICATED`; empty for a trusted one. */
  readonly author: string;
  /** Who the mail of a trusted one is authenticated as. */
  readonly authenticatedAs: string | null;
}

/** A reporter as the interface shows it. */
export const reporterView = ({ org, author, authenticatedAs }: StoredReporter): ShownReporter => {
  if (author === "") return { name: org, claimed_name: null, authenticated_as: authenticatedAs, trusted: true };
  const known = author === UNAUTHENTICATED ? null : author;
  return { name: known, claimed_name: org, authenticated_as: known, trusted: false };
};

/** The organizational domain of what mail is authenticated as. */
export const organisationOf = (from: string | null): string | null =>
  from === null ? null : (organisationalDomain(from) ?? from);

/** A reporter in a few words: `attacker.example (claims to be google.com)`. */
export const reporterWords = ({ name, claimed_name: claimed, trusted }: ShownReporter): string => {
  if (trusted) return name ?? "a reporter without a name";
  if (name === null) return `${claimed ?? "a reporter without a name"} (not authenticated)`;
  return claimed === null ? `${name} (claims no name)` : `${name} (claims to be ${claimed})`;
};

/** What reports say of a range of days, and how much of that only reports say that are not trusted. */
export interface TrustFigures {
  readonly reports: number;
  readonly messages: number;
  readonly untrustedReports: number;
  readonly untrustedMessages: number;
}

const HUNDRED = 100;
const share = (part: number, whole: number): string => `${Math.round((part * HUNDRED * 10) / whole) / 10} %`;

/** How much rests on reports that are not trusted, in one sentence; null when nothing does. */
export const trustSentence = (figures: TrustFigures): string | null => {
  const { reports, messages, untrustedReports, untrustedMessages } = figures;
  if (untrustedReports === 0) return null;
  const number = (value: number): string => value.toLocaleString("en-US");
  const mail =
    messages === 0
      ? ""
      : `, with ${number(untrustedMessages)} of ${number(messages)} messages (${share(untrustedMessages, messages)}),`;
  return `${number(untrustedReports)} of ${number(reports)} reports${mail} came in mail that is not authenticated as the reporter's. They are counted here; advice leaves them out.`;
};
