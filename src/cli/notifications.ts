import { SEVERITIES } from "../foundation/base/severity.ts";
import { accountRecipients } from "../notifications/settings/routes.ts";
import { recipientSchema } from "../foundation/mail/recipients.ts";
import { mailAction, MAIL_KIND_NAMES, MAIL_KINDS } from "../notifications/mail/subscription-store.ts";
import { maskUrl } from "../notifications/channels/channels.ts";
import { EVENT_TYPES } from "../service/event-docs.ts";
import { argument, choice, command, group, option, severalOf, type Terminal, withDefault } from "./command.ts";
import { WINDOWS } from "./windows.ts";
import { CommandFailed, UsageError } from "./io.ts";
import { changeOf, type CommandService, inService, readRecipients, readWebhookUrl } from "./service.ts";

const show = ({ service, caller, print, table }: CommandService & Terminal): void => {
  const view = service.notifications.settings.view(caller);
  const { webhook_url, webhook_configured, recipients, stopped } = view;
  const row = [
    webhook_url === null
      ? "none"
      : maskUrl(webhook_url) + (webhook_configured ? "" : " (disabled: the receiver responded that it is gone)"),
    ...[recipients.join(", ") || "none", view.blacklist_severity_min ?? "all", view.blacklist_digest],
    stopped.map(({ recipient, kind }) => `${MAIL_KIND_NAMES[kind]} to ${recipient}`).join(", ") || "none",
  ];
  print(view, () => table(["WEBHOOK", "RECIPIENTS", "MINIMUM SEVERITY", "DIGEST", "STOPPED BY RECIPIENTS"], [row]));
};

const mailSwitch = (name: "stop" | "resume", description: string) =>
  command({
    description,
    example: `notifications ${name} ops@example.com --account acme`,
    on: inService("events"),
    args: { address: argument("<address>", "the recipient") },
    options: { kind: severalOf("<kind...>", MAIL_KINDS, "which mail; default: all") },
    async run(context, { address, kind: kinds = MAIL_KINDS }) {
      const { service, caller, perform } = context;
      const recipient = recipientSchema.safeParse(address);
      if (!recipient.success) throw new UsageError(`${address}: not an email address`, "address");
      const isOn = name === "resume";
      // The address is not recorded: entries of the audit log cannot be erased.
      await perform({ action: mailAction(isOn), subject: caller.mode, after: { kinds } }, async () => {
        for (const kind of kinds)
          await service.notifications.settings.setMail(caller, { recipient: recipient.data, kind, isOn });
      });
      show(context);
    },
  });

/** The defaults of an account, and who receives no mail. */
const NOTIFICATIONS = group(
  {
    description: "Show and set the default webhook URL and mail recipients of an account.",
    example: "notifications show --account acme",
  },
  {
    show: command({
      description: "Show the defaults.",
      example: "notifications show --account acme",
      on: inService("events"),
      run: show,
    }),
    set: command({
      description: 'Change the defaults; "" removes the URL or the recipients.',
      example: "notifications set --webhook-url https://example.com/hook --account acme",
      on: inService("events"),
      options: {
        webhookUrl: option("<url>", "URL that all events are sent to"),
        recipient: option("<address...>", "addresses for alert mail and digests"),
        severityMin: choice("<severity>", [...SEVERITIES, "all"], "mail no listings below this"),
        digest: choice("<period>", ["off", "daily", "weekly"], "digest of listings"),
      },
      async run(context, { webhookUrl, recipient, severityMin, digest }) {
        const { service, caller, perform } = context;
        const change = changeOf({
          webhookUrl: webhookUrl === "" ? null : webhookUrl && readWebhookUrl(context, webhookUrl),
          recipients: recipient && readRecipients(accountRecipients, recipient),
          blacklistSeverityMin: severityMin === "all" ? null : severityMin,
          blacklistDigest: digest,
        });
        const done = { action: "notifications.set", subject: caller.mode, after: { changed: Object.keys(change) } };
        await perform(done, () => service.notifications.settings.change(caller, change));
        show(context);
      },
    }),
    windows: WINDOWS,
    stop: mailSwitch("stop", "Stop mail to a recipient, as the link in it does."),
    resume: mailSwitch("resume", "Send mail again that was stopped."),
  },
);

/** `webhooks test`: sends one event to a URL now. */
export const WEBHOOK_TEST = command({
  description: "Send one signed event to a URL now and show the response; status 1 when it was not accepted.",
  example: "webhooks test https://example.com/hook --account acme",
  on: inService("events"),
  args: { given: argument("[url]", "default: the default URL of the account") },
  options: {
    type: withDefault(
      choice("<type>", ["webhook.test", ...EVENT_TYPES], "type of the event, with its documented example"),
      "webhook.test",
    ),
  },
  async run(context, { given, type }) {
    const { service, caller, perform, print } = context;
    const url =
      given === undefined ? service.notifications.settings.view(caller).webhook_url : readWebhookUrl(context, given);
    if (url === null) throw new UsageError("The account has no default webhook URL. Pass a URL.", "url");
    const done = { action: "webhooks.test", subject: caller.mode };
    const result = await perform(done, () => service.notifications.webhooks.test(caller, url, type));
    const { id, delivered, elapsedMs: elapsed_ms, httpStatus: http_status, problem } = result;
    const shown = maskUrl(url);
    const outcome = delivered ? "accepted" : (problem ?? "not accepted");
    const status = http_status === null ? "" : ` (HTTP ${http_status})`;
    print(
      { id, url: shown, delivered, http_status, problem, elapsed_ms },
      () => `${shown}: ${outcome}${status}, ${elapsed_ms} ms`,
    );
    if (!delivered) throw new CommandFailed(`${shown} did not accept the event.`, "not_delivered");
  },
});

export const NOTIFICATION_COMMANDS = { notifications: NOTIFICATIONS };
