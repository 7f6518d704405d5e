import type { VerificationRow } from "../../verify/store.ts";
import { Badge } from "./inline.tsx";
import { Button, Field, PostForm } from "./form.tsx";
import type { SubStatus, Verdict } from "../../verify/result.ts";

/** The reason of a verdict as a badge; grey while nothing is known. */
export const ResultBadge = ({ row }: { readonly row: Pick<VerificationRow, "status" | "subStatus"> }) => {
  if (row.status === "pending" || row.subStatus === null)
    return (
      <Badge kind="unknown" icon="clock">
        Waiting
      </Badge>
    );
  const { kind, label } = wordsOfReason(row.subStatus);
  return <Badge kind={kind}>{label}</Badge>;
};

/** The box to verify one address. */
export const VerifyBox = () => (
  <PostForm action="/verify" class="inline-form">
    <Field
      name="email"
      label="Email address"
      type="text"
      isLabelHidden
      placeholder="someone@example.com"
      autocomplete="off"
      isMono
      isRequired
    />
    <Button kind="main">Verify</Button>
  </PostForm>
);

/** How a word is coloured: `unknown` where no mail server gave a usable answer. */
type WordKind = "ok" | "warn" | "bad" | "unknown";

interface ResultWords {
  readonly kind: WordKind;
  /** At most 22 characters. */
  readonly label: string;
  /** One sentence for a person. */
  readonly sentence: string;
}

/** Every verdict in words. */
export const VERDICT_WORDS: Readonly<Record<Verdict, ResultWords>> = {
  deliverable: { kind: "ok", label: "Deliverable", sentence: "The server accepts mail for this address." },
  risky: { kind: "warn", label: "Risky", sentence: "Mail to this address may bounce, or reach nobody." },
  undeliverable: { kind: "bad", label: "Undeliverable", sentence: "Mail to this address will bounce." },
};

/** Every sub_status in words. */
export const REASON_WORDS: Readonly<Record<SubStatus, ResultWords>> = {
  mailbox_exists: VERDICT_WORDS.deliverable,
  invalid_syntax: { kind: "bad", label: "Not an address", sentence: "This text is not an email address." },
  domain_not_found: { kind: "bad", label: "No such domain", sentence: "The domain of this address does not exist." },
  no_mail_server: { kind: "bad", label: "No mail server", sentence: "The domain exists, but has no mail server." },
  null_mx: { kind: "bad", label: "Accepts no mail", sentence: "The domain says that it accepts no mail (null MX)." },
  unroutable_mx: {
    kind: "bad",
    label: "No public mail server",
    sentence: "The mail servers of the domain have no public address.",
  },
  mailbox_not_found: {
    kind: "bad",
    label: "No such mailbox",
    sentence: "The server says that this mailbox does not exist.",
  },
  mailbox_disabled: {
    kind: "bad",
    label: "Mailbox disabled",
    sentence: "The server says that this mailbox is disabled.",
  },
  smtputf8_unsupported: {
    kind: "bad",
    label: "No SMTPUTF8",
    sentence: "The address needs SMTPUTF8, which its mail server does not support.",
  },
  catch_all: {
    kind: "warn",
    label: "Catch-all",
    sentence: "The server accepts every recipient, so nobody can tell whether this mailbox exists.",
  },
  disposable: { kind: "warn", label: "Disposable", sentence: "The domain provides throw-away addresses." },
  role_account: { kind: "warn", label: "Role account", sentence: "The address belongs to a role, not to a person." },
  toxic: { kind: "warn", label: "Suppressed", sentence: "The address is on your suppression list." },
  mailbox_full: { kind: "warn", label: "Mailbox full", sentence: "The mailbox exists, but is full." },
  dnsbl_listed: {
    kind: "warn",
    label: "On a blocklist",
    sentence: "The domain or its mail server is on a DNS blocklist.",
  },
  greylisted: {
    kind: "unknown",
    label: "Greylisted",
    sentence: "The server defers the recipient (greylisting), so the mailbox is unknown.",
  },
  rate_limited: {
    kind: "unknown",
    label: "Rate limited",
    sentence: "The server limits how many recipients we may check, so the mailbox is unknown.",
  },
  smtp_blocked: {
    kind: "unknown",
    label: "Probe blocked",
    sentence: "The server blocks our address, so the mailbox is unknown.",
  },
  sender_rejected: {
    kind: "unknown",
    label: "Sender refused",
    sentence: "The server refuses our sender address, so the mailbox is unknown.",
  },
  tls_required: {
    kind: "unknown",
    label: "TLS required",
    sentence: "The server requires TLS, which could not be used, so the mailbox is unknown.",
  },
  smtp_unreachable: {
    kind: "unknown",
    label: "Server unreachable",
    sentence: "No mail server accepted a connection, so the mailbox is unknown.",
  },
  smtp_timeout: {
    kind: "unknown",
    label: "Server timed out",
    sentence: "The mail server did not reply in time, so the mailbox is unknown.",
  },
  smtp_temporary_error: {
    kind: "unknown",
    label: "Temporary error",
    sentence: "The server replied with a temporary error, so the mailbox is unknown.",
  },
  smtp_protocol_error: {
    kind: "unknown",
    label: "Invalid SMTP",
    sentence: "The server did not follow the SMTP protocol, so the mailbox is unknown.",
  },
  unverifiable_provider: {
    kind: "unknown",
    label: "Provider hides it",
    sentence: "This provider gives the same reply for every recipient, so the mailbox is unknown.",
  },
  dns_error: {
    kind: "unknown",
    label: "DNS error",
    sentence: "The domain could not be resolved, so the mailbox is unknown.",
  },
  internal_error: {
    kind: "unknown",
    label: "Internal error",
    sentence: "An error of this service ended the verification; verify the address again.",
  },
};

/** The words of a stored sub_status; of one that this version does not know, its name. */
export const wordsOfReason = (subStatus: string): ResultWords =>
  Object.hasOwn(REASON_WORDS, subStatus)
    ? REASON_WORDS[subStatus as SubStatus]
    : { kind: "unknown", label: subStatus, sentence: `The result is ${subStatus}.` };

/** The words of a stored verdict. */
export const wordsOfVerdict = (verdict: string): ResultWords =>
  Object.hasOwn(VERDICT_WORDS, verdict)
    ? VERDICT_WORDS[verdict as Verdict]
    : { kind: "unknown", label: verdict, sentence: `The verdict is ${verdict}.` };
