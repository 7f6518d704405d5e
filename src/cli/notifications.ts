import { type Command, Option } from "commander";
import { SEVERITIES, type Severity } from "../foundation/base/severity.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { recipientSchema } from "../foundation/mail/recipients.ts";
import type { Notifications } from "../notifications/settings/store.ts";
import { mailAction, MAIL_KIND_NAMES, MAIL_KINDS, type MailKind } from "../notifications/mail/subscription-store.ts";
import { webhookUrlSchema } from "../notifications/webhooks/url-store.ts";
import { EVENT_TYPES } from "../service/event-docs.ts";
import { type AccountOptions, addCommand, addGroup, ofAccount } from "./command.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { type CommandService, withService } from "./service.ts";
import { table } from "./terminal-text.ts";

type View = ReturnType<Notifications["view"]>;

const viewTable = (view: View, { columns }: Io): string =>
  table(
    ["WEBHOOK", "RECIPIENTS", "MINIMUM SEVERITY", "DIGEST", "STOPPED BY RECIPIENTS"],
    [
      [
        view.webhook_url === null
          ? "none"
          : view.webhook_url + (view.webhook_configured ? "" : " (disabled after 410)"),
        ...[view.recipients.join(", ") || "none", view.blacklist_severity_min ?? "all", view.blacklist_digest],
        view.stopped.map(({ recipient, kind }) => `${MAIL_KIND_NAMES[kind]} to ${recipient}`).join(", ") || "none",
      ],
    ],
    columns,
  );

const readUrl = ({ config }: CommandService, url: string): string => {
  const read = webhookUrlSchema(createUrlPolicy(config.webhookAllowNetworks)).safeParse(url);
  if (read.success) return read.data;
  throw new UsageError(`${url}: ${read.error.issues[0]?.message ?? "not a URL"}`, "webhook_url");
};

interface SetOptions extends AccountOptions {
  readonly webhookUrl?: string;
  readonly recipient?: readonly string[];
  readonly severityMin?: Severity | "all";
  readonly digest?: "off" | "daily" | "weekly";
}

/** `notifications show | set | stop | resume`: the defaults of an account, and who receives no mail. */
export const addNotificationCommands = (program: Command, io: Io): void => {
  const group = addGroup(program, "notifications", {
    description: "Show and set the default webhook URL and mail recipients of an account.",
    example: "notifications show --account acme",
  });
  ofAccount(
    addCommand(group, "show", { description: "Show the defaults.", example: "notifications show --account acme" }),
    "events",
  ).action((options: AccountOptions) =>
    withService(io, options, async ({ service, caller }) => {
      const view = service.notifications.settings.view(caller);
      print(io, options.json, view, () => viewTable(view, io));
    }),
  );
  addNotificationSet(group, io);
  addMailSwitch(group, io, {
    name: "stop",
    isOn: false,
    description: "Stop mail to a recipient, as the link in it does.",
  });
  addMailSwitch(group, io, { name: "resume", isOn: true, description: "Send mail again that was stopped." });
};

interface MailSwitch {
  readonly name: string;
  readonly isOn: boolean;
  readonly description: string;
}

const addMailSwitch = (group: Command, io: Io, { name, isOn, description }: MailSwitch): Command =>
  ofAccount(
    addCommand(group, name, { description, example: `notifications ${name} ops@example.com --account acme` }),
    "events",
  )
    .argument("<address>", "the recipient")
    .addOption(new Option("--kind <kind...>", "which mail; default: all").choices(MAIL_KINDS))
    .action(
      (address: string, { kind: kinds = MAIL_KINDS, ...options }: AccountOptions & { kind?: readonly MailKind[] }) =>
        withService(io, options, async ({ service, caller, perform }) => {
          const recipient = recipientSchema.safeParse(address);
          if (!recipient.success) throw new UsageError(`${address}: not an email address`, "address");
          // The address is not recorded: entries of the audit log cannot be erased.
          const done = { action: mailAction(isOn), subject: caller.mode, after: { kinds } };
          await perform(done, async () => {
            for (const kind of kinds)
              await service.notifications.settings.setMail(caller, { recipient: recipient.data, kind, isOn });
          });
          const view = service.notifications.settings.view(caller);
          print(io, options.json, view, () => viewTable(view, io));
        }),
    );

const addNotificationSet = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "set", {
      description: 'Change the defaults; "" removes the URL or the recipients.',
      example: "notifications set --webhook-url https://example.com/hook --account acme",
    }),
    "events",
  )
    .option("--webhook-url <url>", "URL that all events are sent to")
    .option("--recipient <address...>", "addresses for alert mail and digests")
    .addOption(new Option("--severity-min <severity>", "mail no listings below this").choices([...SEVERITIES, "all"]))
    .addOption(new Option("--digest <period>", "digest of listings").choices(["off", "daily", "weekly"]))
    .action((options: SetOptions) =>
      withService(io, options, async (command) => {
        const { service, caller, perform } = command;
        const { webhookUrl, recipient, severityMin, digest } = options;
        const change = {
          ...(webhookUrl === undefined ? {} : { webhookUrl: webhookUrl === "" ? null : readUrl(command, webhookUrl) }),
          ...(recipient === undefined ? {} : { recipients: recipient.filter((address) => address !== "") }),
          ...(severityMin === undefined ? {} : { blacklistSeverityMin: severityMin === "all" ? null : severityMin }),
          ...(digest === undefined ? {} : { blacklistDigest: digest }),
        };
        if (Object.keys(change).length === 0) throw new UsageError("Name at least one setting to change.");
        const done = { action: "notifications.set", subject: caller.mode, after: { changed: Object.keys(change) } };
        await perform(done, () => service.notifications.settings.change(caller, change));
        const view = service.notifications.settings.view(caller);
        print(io, options.json, view, () => viewTable(view, io));
      }),
    );

/** `webhooks test`: sends one event to a URL now. */
export const addWebhookTest = (webhooks: Command, io: Io): Command =>
  ofAccount(
    addCommand(webhooks, "test", {
      description: "Send one signed event to a URL now and show the response; status 1 when it was not accepted.",
      example: "webhooks test https://example.com/hook --account acme",
    }),
    "events",
  )
    .argument("[url]", "default: the default URL of the account")
    .addOption(
      new Option("--type <type>", "type of the event, with its documented example")
        .choices(["webhook.test", ...EVENT_TYPES])
        .default("webhook.test"),
    )
    .action((given: string | undefined, options: AccountOptions & { type: string }) =>
      withService(io, options, async (command) => {
        const { service, caller, perform } = command;
        const url =
          given === undefined ? service.notifications.settings.view(caller).webhook_url : readUrl(command, given);
        if (url === null) throw new UsageError("The account has no default webhook URL. Pass a URL.", "url");
        const done = { action: "webhooks.test", subject: caller.mode };
        const result = await perform(done, () => service.notifications.webhooks.test(caller, url, options.type));
        const { id, delivered, elapsedMs: elapsed_ms, httpStatus: http_status, problem } = result;
        const outcome = delivered ? "accepted" : (problem ?? "not accepted");
        print(
          io,
          options.json,
          { id, url, delivered, http_status, problem, elapsed_ms },
          () => `${url}: ${outcome}${http_status === null ? "" : ` (HTTP ${http_status})`}, ${elapsed_ms} ms`,
        );
        if (!delivered) throw new CommandFailed(`${url} did not accept the event.`, "not_delivered");
      }),
    );
