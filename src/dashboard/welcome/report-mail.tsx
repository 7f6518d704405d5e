import { z } from "zod";
import type { Clock } from "../../foundation/base/clock.ts";
import { manualHint } from "../../foundation/base/manual-hint.ts";
import { waitFor } from "../../foundation/base/wait.ts";
import { parseDomain } from "../../foundation/mail/domain.ts";
import { organisationalDomain } from "../../foundation/mail/organisational-domain.ts";
import { serviceRecords } from "../../dmarc/records/record/discovery.ts";
import type { DoctorCheck } from "../../doctor/doctor-check.ts";
import { Badge, ButtonLink, HelpText } from "../components/inline.tsx";
import { Button, Field, PostForm } from "../components/form.tsx";
import { CopyBlock, Copyable } from "../components/copy.tsx";
import { PageHead, Panel } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { formAction, page } from "../page.ts";
import type { View } from "../visit.ts";

/** What is known about how reports can arrive. */
export interface ReportMailUseCases {
  readonly clock: Clock;
  readonly reportMail: {
    /** POSTWARDEN_REPORT_HOST; null while it is not set. */
    readonly reportHost: string | null;
    /** The name of this machine in MX records; null where it has none. */
    readonly mailHost: string | null;
    /** The host of the URL under which the service is reached. */
    readonly urlHost: string | null;
    readonly isListening: boolean;
    /** Looks for the two records of a host, past all caches. */
    readonly check: (reportHost: string) => Promise<readonly DoctorCheck[]>;
  };
}

const PATH = "/welcome/report-mail";
const CHECK_MS_MAX = 15_000;
const HOST_CHARACTERS_MAX = 200;

const hostField = z
  .string()
  .trim()
  .max(HOST_CHARACTERS_MAX)
  .transform((text, context) => {
    const parsed = parseDomain(text.replace(/\.$/, ""));
    if (parsed.ok && parsed.value.ascii.includes(".")) return parsed.value.ascii;
    context.addIssue({ code: "custom", message: "Must be a host name such as reports.example.com" });
    return z.NEVER;
  });

/** The records and settings for report mail, with a check whether the records are published. */
export const createReportMailPages = ({ clock, reportMail }: ReportMailUseCases) => {
  const view = (host: string, found: readonly DoctorCheck[] | null): View => ({
    title: "Set up report mail",
    section: "dmarc",
    body: <ReportMailPage {...{ host, found, reportMail }} />,
  });
  const suggested = reportMail.reportHost ?? suggestedHost(reportMail);
  return [
    page({ path: PATH }, () => view(suggested, null)),
    formAction(
      { path: PATH, form: z.object({ host: hostField, act: z.enum(["show", "check"]) }) },
      async ({ form: { host, act }, request }) => {
        if (act === "show") return view(host, null);
        const limits = { timeoutMs: CHECK_MS_MAX, signal: request.signal };
        const waited = await waitFor(clock, reportMail.check(host), limits);
        return view(host, waited.ok ? waited.value : []);
      },
      { rerender: () => view(suggested, null) },
    ),
  ];
};

/** A name below the domain of this machine, or of the URL of the service. */
const suggestedHost = ({ mailHost, urlHost }: ReportMailUseCases["reportMail"]): string => {
  const domain = [mailHost, urlHost].flatMap((host) => (host === null ? [] : (organisationalDomain(host) ?? [])))[0];
  return `reports.${domain ?? "example.com"}`;
};

interface ReportMailProps extends Pick<ReportMailUseCases, "reportMail"> {
  readonly host: string;
  /** Null before the check; empty when the DNS did not respond in time. */
  readonly found: readonly DoctorCheck[] | null;
}

const ReportMailPage = (props: ReportMailProps) => (
  <>
    <PageHead
      title="Set up report mail"
      crumbs={[
        ["First steps", "/welcome"],
        ["DMARC", "/dmarc"],
      ]}
      meta="Receivers send their DMARC reports to a host name of yours, and this service takes them on port 25."
    />
    <Name {...props} />
    <Records {...props} />
    <Settings {...props} />
    <Panel title="A mailbox instead">
      <p>
        <HelpText
          text={`Without port 25, this service can fetch reports from a mailbox: set POSTWARDEN_IMAP_URL and POSTWARDEN_IMAP_ADDRESS. See ${manualHint("dmarc-reports#report-mail-by-imap")}. Report files can be uploaded at any time.`}
        />
      </p>
      <div class="actions">
        <ButtonLink href="/dmarc/intake">Upload reports</ButtonLink>
      </div>
    </Panel>
  </>
);

const Name = ({ host, reportMail: { reportHost } }: ReportMailProps) => (
  <Panel title="1. Choose a name" aside={reportHost === null ? "POSTWARDEN_REPORT_HOST is not set" : "set"}>
    <p class="soft">Choose a name below a domain of yours, which nothing else uses.</p>
    <PostForm action={PATH} class="inline-form">
      <Field name="host" label="Report host" value={host} isMono isRequired />
      <Button name="act" value="show">
        Show its records
      </Button>
    </PostForm>
  </Panel>
);

const CHECK_WORDS = { ok: ["ok", "published"], warn: ["unknown", "unknown"], fail: ["bad", "missing"] } as const;

const Records = ({ host, found, reportMail: { mailHost } }: ReportMailProps) => (
  <Panel title="2. Publish two DNS records" isFlush>
    <Table
      caption="Records to publish"
      columns={[{ title: "Name", isMain: true, isText: true }, { title: "Type" }, { title: "Value", isText: true }]}
      rows={serviceRecords(host, mailHost).map(({ host: name, type, value, purpose }) => ({
        key: type,
        cells: [
          <>
            <Copyable text={name} />
            <p class="soft small">{purpose}</p>
          </>,
          type,
          <Copyable text={value} />,
        ],
      }))}
    />
    <div class="panel-body actions">
      <PostForm action={PATH}>
        <input type="hidden" name="host" value={host} />
        <Button kind="main" icon="refresh-cw" name="act" value="check">
          Are they published now?
        </Button>
      </PostForm>
    </div>
    {found !== null && (
      <ul class="findings" role="status">
        {found.length === 0 && (
          <li>
            <Badge kind="unknown">unknown</Badge>
            <p>The DNS did not respond within {CHECK_MS_MAX / 1_000} seconds. Try again.</p>
          </li>
        )}
        {found.map(({ check, state, message }) => {
          const [kind, word] = CHECK_WORDS[state];
          return (
            <li key={check}>
              <Badge kind={kind}>{word}</Badge>
              <p>{message}</p>
            </li>
          );
        })}
      </ul>
    )}
  </Panel>
);

const settingsFor = (host: string, mailHost: string | null): string =>
  [
    `POSTWARDEN_REPORT_HOST=${host}`,
    "POSTWARDEN_REPORT_LISTEN=0.0.0.0:25",
    ...(mailHost === null ? ["POSTWARDEN_HELO_NAME=mail.example.com"] : []),
  ].join("\n");

const Settings = ({ host, reportMail: { reportHost, mailHost, isListening } }: ReportMailProps) => (
  <Panel title="3. Set the service up" aside={reportHost === host && isListening ? "set" : "then restart it"}>
    <div class="stack">
      <CopyBlock text={settingsFor(host, mailHost)} label="Settings" />
      <p class="soft">
        <HelpText
          text={`${mailHost === null ? "Replace mail.example.com by the public name of this machine; the MX record names it, too. " : ""}A port below 1024 needs a capability, and the firewall must let port 25 in. Where Postfix has port 25, it forwards the mail. See ${manualHint("dmarc-reports#report-mail-by-smtp")}.`}
        />
      </p>
    </div>
  </Panel>
);
