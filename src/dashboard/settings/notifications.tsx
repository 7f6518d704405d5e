import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import { SEVERITIES } from "../../foundation/base/severity.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import type { Notifications } from "../../notifications/settings/store.ts";
import { mailChangeSchema, notificationsChangeSchema } from "../../notifications/settings/routes.ts";
import {
  mailAction,
  MAIL_KIND_NAMES,
  MAIL_KINDS,
  type MailKind,
  type MailSubscriptions,
  offPath,
  type MailSubscription,
} from "../../notifications/mail/subscription-store.ts";
import { CHANNEL_TITLES, maskUrl } from "../../notifications/channels/channels.ts";
import type { MaintenanceWindows } from "../../notifications/windows/windows.ts";
import { webhookUrlSchema } from "../../notifications/webhooks/url-store.ts";
import { Mono } from "../components/copy.tsx";
import { Empty, Callout, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { Button, Field, PostForm, SelectField, TextAreaField } from "../components/form.tsx";
import { Link, Badge } from "../components/inline.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/figures.tsx";
import { createWindowActions, QuietCallout, WindowPanels } from "./windows.tsx";
import { formAction, page, type PageRoute, publicAction, publicPage } from "../page.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";

export interface NotificationUseCases {
  readonly notifications: Notifications;
  readonly rules: UrlPolicy;
  readonly windows: MaintenanceWindows;
  /** Whether the service can send mail. */
  readonly hasMail: boolean;
  /** Mails a user that mail works, and returns null or why it was not sent; null where the service sends no mail. */
  readonly sendTestMail: ((email: string) => Promise<string | null>) | null;
  readonly clock: Clock;
}

type Settings = ReturnType<Notifications["view"]>;

const PATH = "/settings/notifications";
const TEST_PAUSE_MS = 30_000;
const TESTERS_MAX = 1_000;
const DIGESTS: ReadonlyArray<readonly [string, string]> = [
  ["off", "Off"],
  ["daily", "Every day at 06:00 UTC"],
  ["weekly", "Mondays at 06:00 UTC"],
];

const defaultsForm = z.object({
  webhook_url: z.string().trim().default(""),
  recipients: z.string().default(""),
  severity: z.enum(["", ...SEVERITIES]).default(""),
  digest: z.enum(["off", "daily", "weekly"]).default("off"),
});
const mailForm = z.object({
  recipient: z.string().trim().min(1, "Enter an address"),
  kind: z.enum(MAIL_KINDS),
  enabled: z.enum(["true", "false"]).transform((text) => text === "true"),
});

/** What a schema of the API reads; what does not fit is shown beside its field. */
const readBody = <S extends z.ZodType>(schema: S, body: unknown): z.output<S> => {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  const issues = read.error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
  throw new AppError("Invalid request body", { issues });
};

/** Default webhook and recipients, digests, and mail that was stopped. */
export const createNotificationPages = (useCases: NotificationUseCases) => {
  const { notifications, rules, hasMail, windows } = useCases;
  const view = ({ caller, mode, user }: Viewer): View => {
    const facts = { settings: notifications.view(caller), hasMail, isTest: mode === "test" };
    const who = { isOwner: user.role === "owner", isOperator: user.isOperator };
    const body = <NotificationsPage {...facts} {...who} windows={windows.view(caller)} />;
    return { title: "Notifications", section: "settings", body };
  };
  return [
    page({ path: PATH }, ({ viewer }) => view(viewer)),
    formAction(
      { path: PATH, form: defaultsForm },
      async ({ viewer, form, done }) => {
        const change = readBody(notificationsChangeSchema(webhookUrlSchema(rules)), {
          webhook_url: form.webhook_url === "" ? null : form.webhook_url,
          recipients: form.recipients.split(/[\s,;]+/).filter((part) => part !== ""),
          blacklist_severity_min: form.severity === "" ? null : form.severity,
          blacklist_digest: form.digest,
        });
        done.after = { mode: viewer.mode, recipients: change.recipients?.length ?? 0, digest: form.digest };
        await notifications.change(viewer.caller, {
          webhookUrl: change.webhook_url ?? null,
          recipients: change.recipients ?? [],
          blacklistSeverityMin: change.blacklist_severity_min ?? null,
          blacklistDigest: change.blacklist_digest ?? "off",
        });
        return redirectTo(viewer, PATH, { ok: "Saved." });
      },
      { rerender: ({ viewer }) => view(viewer) },
    ),
    createTestAction(useCases),
    ...createWindowActions(windows, view),
    formAction(
      { path: `${PATH}/mail`, form: mailForm },
      async ({ viewer, form, done }) => {
        const { recipient, kind, enabled: isOn } = readBody(mailChangeSchema, form);
        // The address is not recorded: entries of the audit log cannot be erased.
        done.action = mailAction(isOn);
        done.after = { kind };
        await notifications.setMail(viewer.caller, { recipient, kind, isOn });
        const what = MAIL_KIND_NAMES[kind];
        const ok = isOn ? `${recipient} receives ${what} again.` : `${recipient} receives no more ${what}.`;
        return redirectTo(viewer, PATH, { ok });
      },
      { rerender: ({ viewer }) => view(viewer) },
    ),
  ];
};

/** Sends a mail to the user who asks for it, to nobody else, and not more often than every 30 seconds. */
const createTestAction = ({ sendTestMail, clock }: NotificationUseCases) => {
  const lastMs = new BoundedMap<string, number>(TESTERS_MAX);
  return formAction({ path: `${PATH}/test-mail` }, async ({ viewer }) => {
    const { id, email, isOperator } = viewer.user;
    if (sendTestMail === null) return redirectTo(viewer, PATH, { bad: "This service does not send mail." });
    const sinceMs = clock.monotonicMs() - (lastMs.get(id) ?? Number.NEGATIVE_INFINITY);
    if (sinceMs < TEST_PAUSE_MS)
      return redirectTo(viewer, PATH, { bad: "A test mail was sent less than 30 seconds ago. Wait a moment." });
    lastMs.set(id, clock.monotonicMs());
    const problem = await sendTestMail(email);
    if (problem === null) return redirectTo(viewer, PATH, { ok: `The relay accepted a test mail to ${email}.` });
    const why = isOperator ? problem : "The operator of this service can see why by sending one.";
    return redirectTo(viewer, PATH, { bad: `The test mail was not sent. ${why}` });
  });
};

interface PageProps {
  readonly settings: Settings;
  readonly hasMail: boolean;
  readonly isTest: boolean;
  /** Others only see the settings. */
  readonly isOwner: boolean;
  readonly isOperator: boolean;
  readonly windows: ReturnType<MaintenanceWindows["view"]>;
}

const NotificationsPage = ({ settings, hasMail, isTest, windows, isOwner, isOperator }: PageProps) => (
  <>
    <PageHead
      title="Notifications"
      meta="Defaults for every target, domain and list, in addition to what each of them has set."
    />
    {!hasMail && !isTest && (
      <Callout kind="unknown" label="No mail" title="This service does not send mail">
        <p>
          Its operator enables it with <code>POSTWARDEN_NOTIFY_SMTP_URL</code> and <code>POSTWARDEN_NOTIFY_FROM</code>.
          Webhooks work without it.
        </p>
      </Callout>
    )}
    <QuietCallout quietUntil={windows.quiet_until} />
    <Columns
      side={
        !isTest &&
        isOwner && (
          <>
            {hasMail && <TestMailForm />}
            <StopForm />
          </>
        )
      }
    >
      {isOwner ? <Defaults {...{ settings, hasMail, isTest }} /> : <DefaultRows settings={settings} />}
      <WindowPanels {...{ windows, isOwner, isOperator }} />
      {!isTest && <Stopped stopped={settings.stopped} isOwner={isOwner} />}
    </Columns>
  </>
);

const DefaultRows = ({ settings }: Pick<PageProps, "settings">) => (
  <Panel title="Defaults" aside="An owner can change them" isFlush>
    <Rows>
      <Row label="Webhook URL">{settings.webhook_url === null ? "none" : maskUrl(settings.webhook_url)}</Row>
      <Row label="Recipients of alert mail">{settings.recipients.join(", ") || "none"}</Row>
      <Row label="Digest of listings">{settings.blacklist_digest}</Row>
      <Row label="Listings are reported from">{settings.blacklist_severity_min ?? "the default"}</Row>
    </Rows>
  </Panel>
);

const Defaults = ({ settings, hasMail, isTest }: Pick<PageProps, "settings" | "hasMail" | "isTest">) => (
  <Panel title="Defaults" aside={<Link href="/webhooks">Deliveries</Link>}>
    <PostForm action={PATH} class="form">
      <Field
        name="webhook_url"
        label="Webhook URL"
        type="url"
        value={settings.webhook_url}
        placeholder="https://example.com/hook"
        hint={`Receives every event, signed. URLs of ${CHANNEL_TITLES} get messages.`}
      />
      {settings.webhook_url !== null && !settings.webhook_configured && (
        <p>
          <Badge kind="warn">Disabled</Badge> The receiver responded that the URL is gone. Save to enable it again.
        </p>
      )}
      {!isTest && (
        <>
          <TextAreaField
            name="recipients"
            label="Recipients of alert mail"
            value={settings.recipients.join("\n")}
            rows={3}
            isMono
            hint={hasMail ? "One address a line, at most 10." : "Mail has to be enabled first."}
          />
          <SelectField
            name="digest"
            label="Digest of listings"
            value={settings.blacklist_digest}
            options={DIGESTS}
            hint="Digests about DMARC are set for each domain."
          />
        </>
      )}
      <SelectField
        name="severity"
        label="Listings are reported from"
        value={settings.blacklist_severity_min ?? ""}
        options={[["", "the default: webhooks all, mail medium"], ...SEVERITIES.map((one) => [one, one] as const)]}
      />
      <Button kind="main">Save</Button>
    </PostForm>
  </Panel>
);

const Stopped = ({ stopped, isOwner }: Pick<PageProps, "isOwner"> & { readonly stopped: Settings["stopped"] }) => (
  <Panel title="Stopped mail" isFlush>
    {stopped.length === 0 ? (
      <Empty title="Nobody has stopped any mail">
        <p>Every mail has a link that stops such mail to its recipient. Recipients who used it are listed here.</p>
      </Empty>
    ) : (
      <Table
        caption="Mail that recipients receive no longer"
        columns={[
          { title: "Recipient", isMain: true },
          { title: "Mail" },
          { title: "Since" },
          { title: "Resume", isTitleHidden: true, align: "end" },
        ]}
        rows={stopped.map(({ recipient, kind, at }) => ({
          key: `${recipient} ${kind}`,
          cells: [
            <Mono text={recipient} />,
            MAIL_KIND_NAMES[kind],
            <Time atMs={Date.parse(at)} />,
            isOwner ? <ResumeForm recipient={recipient} kind={kind} /> : "",
          ],
        }))}
      />
    )}
  </Panel>
);

const ResumeForm = ({ recipient, kind }: { readonly recipient: string; readonly kind: MailKind }) => (
  <PostForm action={`${PATH}/mail`}>
    <input type="hidden" name="recipient" value={recipient} />
    <input type="hidden" name="kind" value={kind} />
    <Button name="enabled" value="true" icon="bell" title={`Send ${MAIL_KIND_NAMES[kind]} to ${recipient} again`}>
      Resume
    </Button>
  </PostForm>
);

const TestMailForm = () => (
  <Panel title="Test mail">
    <PostForm action={`${PATH}/test-mail`} class="form">
      <p>Sends a mail to your own address, by the relay that alerts use.</p>
      <Button icon="mail">Send a test mail</Button>
    </PostForm>
  </Panel>
);

const StopForm = () => (
  <Panel title="Stop mail to an address">
    <PostForm action={`${PATH}/mail`} class="form">
      <p>
        Does what the link in the mail does. It stays stopped until it is resumed, even if the address is added again.
      </p>
      <Field name="recipient" label="Address" type="email" isRequired />
      <SelectField
        name="kind"
        label="Mail"
        options={MAIL_KINDS.map((kind) => [kind, MAIL_KIND_NAMES[kind]] as const)}
      />
      <Button name="enabled" value="false" icon="bell-off">
        Stop
      </Button>
    </PostForm>
  </Panel>
);

export interface MailOffUseCases {
  readonly subscriptions: Pick<MailSubscriptions, "findByToken">;
  /** Stops or resumes the mail of a link, with an entry in the audit log. Undefined for a link that no mail had. */
  readonly setByLink: (token: string, isOn: boolean) => Promise<MailSubscription | undefined>;
  /** The name of an account; empty when it was deleted. */
  readonly accountName: (id: string) => string;
}

const MAIL_OFF = "/notifications/off/:token";
const MAIL_ON = "/notifications/on/:token";
const linkPath = z.object({ token: z.string().max(100) });

/** The pages behind the link in every mail: without a session, for one kind of mail to one recipient. */
export const createMailOffPages = ({
  subscriptions,
  setByLink,
  accountName,
}: MailOffUseCases): readonly PageRoute[] => {
  const viewOf = (subscription: MailSubscription | undefined): View => {
    if (subscription === undefined) throw unknownLink();
    const { stoppedAtMs, kind } = subscription;
    const title = stoppedAtMs === null ? `Stop ${MAIL_KIND_NAMES[kind]}` : "Stopped";
    return {
      title,
      section: null,
      body: <MailOffPage {...subscription} account={accountName(subscription.accountId)} />,
    };
  };
  return [
    // Programs that scan mail follow its links: this changes nothing.
    publicPage({ path: MAIL_OFF, params: linkPath }, ({ params }) => viewOf(subscriptions.findByToken(params.token))),
    oneClickRoute(setByLink, viewOf),
    publicAction({ path: MAIL_ON, params: linkPath }, async ({ params }) =>
      viewOf(await setByLink(params.token, true)),
    ),
  ];
};

const unknownLink = (): AppError =>
  new AppError("not_found", {
    message: "This unsubscribe link is invalid or expired. Use the link in a recent message.",
  });

/**
 * Stops the mail. Mail programs send this without a session and without a token against forgery (RFC 8058 §3.2); the link
 * cannot be guessed, and this is all that it does. The body is not read.
 */
const oneClickRoute = (
  setByLink: MailOffUseCases["setByLink"],
  viewOf: (subscription: MailSubscription | undefined) => View,
): PageRoute => ({
  method: "POST",
  path: MAIL_OFF,
  access: "anyone",
  async serve({ params }) {
    const read = linkPath.safeParse(params);
    return { view: viewOf(read.success ? await setByLink(read.data.token, false) : undefined) };
  },
});

const MailOffPage = ({ token, recipient, kind, stoppedAtMs, account }: MailSubscription & { account: string }) => {
  const what = MAIL_KIND_NAMES[kind];
  const of = account === "" ? "" : ` of the account “${account}”`;
  if (stoppedAtMs !== null)
    return (
      <>
        <h1>Stopped</h1>
        <p>
          <b class="mono">{recipient}</b> receives no more {what}
          {of}, whoever adds the address as a recipient. It can be resumed here, or in the dashboard under Settings ›
          Notifications.
        </p>
        <PostForm action={`/notifications/on/${token}`}>
          <Button icon="bell">Undo: send them again</Button>
        </PostForm>
      </>
    );
  return (
    <>
      <h1>Stop {what}?</h1>
      <p>
        <b class="mono">{recipient}</b> will receive no more {what}
        {of}. Other mail, and other recipients, are not affected.
      </p>
      <PostForm action={offPath(token)}>
        <Button kind="main" icon="bell-off">
          Stop {what}
        </Button>
      </PostForm>
    </>
  );
};
