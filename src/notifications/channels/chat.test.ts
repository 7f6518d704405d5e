import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { EVENT_DOCS } from "../../service/event-docs.ts";
import { createReceivers } from "../../testing/receiver.ts";
import { createWebhookHarness, until } from "../../testing/webhook-harness.ts";
import { channelOf, formatOf } from "./channels.ts";
import { eventMessage } from "./message.ts";

const SLACK = "https://hooks.slack.com/services/T0/B0/x";
const TEAMS = "https://prod-1.westeurope.logic.azure.com/workflows/x/triggers/manual/paths/invoke";
const CONTEXT = { baseUrl: "https://verify.example.org", docs: EVENT_DOCS };

// Slack: Block Kit, limits of section blocks and messages.
const slackText = z.strictObject({
  type: z.literal("mrkdwn"),
  text: z.string().min(1).max(3_000),
  verbatim: z.literal(true),
});
const slackSchema = z.strictObject({
  text: z.string().min(1).max(3_000),
  mrkdwn: z.literal(false),
  parse: z.literal("none"),
  link_names: z.literal(false),
  unfurl_links: z.literal(false),
  unfurl_media: z.literal(false),
  blocks: z
    .array(z.strictObject({ type: z.literal("section"), text: slackText }))
    .min(1)
    .max(50),
});

// Adaptive Card 1.4 and the message around it, as far as it is used.
const run = z.strictObject({
  type: z.literal("TextRun"),
  text: z.string().min(1),
  weight: z.enum(["Default", "Lighter", "Bolder"]).optional(),
  size: z.enum(["Small", "Default", "Medium", "Large", "ExtraLarge"]).optional(),
  color: z.enum(["Default", "Dark", "Light", "Accent", "Good", "Warning", "Attention"]).optional(),
});
const teamsSchema = z.strictObject({
  type: z.literal("message"),
  attachments: z
    .array(
      z.strictObject({
        contentType: z.literal("application/vnd.microsoft.card.adaptive"),
        contentUrl: z.null(),
        content: z.strictObject({
          $schema: z.literal("http://adaptivecards.io/schemas/adaptive-card.json"),
          type: z.literal("AdaptiveCard"),
          version: z.literal("1.4"),
          body: z.array(z.strictObject({ type: z.literal("RichTextBlock"), inlines: z.array(run).min(1) })).min(1),
          actions: z
            .array(z.strictObject({ type: z.literal("Action.OpenUrl"), title: z.string().min(1), url: z.url() }))
            .max(6)
            .optional(),
        }),
      }),
    )
    .length(1),
});
const TEAMS_BYTES_MAX = 28 * 1024;

const bodyOf = (type: string, data: object) =>
  JSON.stringify({ type, timestamp: "2026-01-01T00:00:00.000Z", data: { mode: "live", ...data } });
const payload = (url: string, body: string): unknown =>
  JSON.parse(channelOf(url)?.request(new URL(url), eventMessage(body, CONTEXT)).body ?? "");
const slack = (body: string) => slackSchema.parse(payload(SLACK, body));
const teams = (body: string) => teamsSchema.parse(payload(TEAMS, body));
const textOf = (message: z.output<typeof slackSchema>) => message.blocks.map(({ text }) => text.text).join("\n");

test.each([
  [SLACK, "slack"],
  ["https://hooks.slack-gov.com/services/T0/B0/x", "slack"],
  ["https://hooks.slack.com/workflows/T0/x", "standard"],
  ["https://hooks.slack.com.evil.example/services/T0", "standard"],
  [TEAMS, "teams"],
  ["https://acme.webhook.office.com/webhookb2/x", "teams"],
  ["https://a.b.environment.api.powerplatform.com:443/powerautomate/x", "teams"],
  ["https://webhook.office.com.example.com/", "standard"],
  ["https://example.com/services/", "standard"],
])("%s gets %s", (url, format) => {
  expect(formatOf(url)).toBe(format as ReturnType<typeof formatOf>);
});

describe("every documented event", () => {
  test.each(EVENT_DOCS.map(({ type, example }) => [type, example] as const))(
    "%s is a message of Slack and of Teams",
    (type, example) => {
      const body = bodyOf(type, example as object);
      const message = slack(body);
      // A sentence of its own, not the name of the type.
      expect(message.text).not.toBe(type);
      expect(message.text.length).toBeGreaterThan(10);
      const card = teams(body);
      expect(card.attachments[0]?.content.body[0]?.inlines[0]?.text).toBeTruthy();
      expect(Buffer.byteLength(JSON.stringify(card))).toBeLessThan(TEAMS_BYTES_MAX);
    },
  );

  test("has severity, facts and links", () => {
    const example = EVENT_DOCS.find(({ type }) => type === "blacklist.listed")?.example as { target_id: string };
    const message = slack(bodyOf("blacklist.listed", example));
    expect(message.text).toBe("High: 198.51.100.7 is listed on SpamCop SCBL");
    const text = textOf(message);
    expect(text).toContain("*Meaning:* Reported as a source of spam by users or traps.");
    expect(text).toContain("<https://www.spamcop.net/bl.shtml|Delisting page>");
    expect(text).toContain(`<https://verify.example.org/blocklists/${example.target_id}|Details>`);
    const { content } = teams(bodyOf("blacklist.listed", example)).attachments[0] ?? {};
    expect(content?.actions?.map(({ url }) => url)).toEqual([
      "https://www.spamcop.net/bl.shtml",
      `https://verify.example.org/blocklists/${example.target_id}`,
    ]);
    expect(content?.body[0]?.inlines[0]).toMatchObject({ color: "Attention" });
  });

  test("about test data links to its page among the test data", () => {
    const example = EVENT_DOCS.find(({ type }) => type === "blacklist.listed")?.example as { target_id: string };
    const text = textOf(slack(bodyOf("blacklist.listed", { ...example, mode: "test" })));
    expect(text).toContain(`<https://verify.example.org/test/blocklists/${example.target_id}|Details>`);
  });

  test("is marked as a test or as from a test key", () => {
    expect(slack(bodyOf("blacklist.listed", { test: true })).text).toContain("[TEST, nothing happened]");
    expect(slack(bodyOf("blacklist.listed", { mode: "test" })).text).toContain("[test key]");
  });
});

describe("quoted text", () => {
  const EVIL = "<!channel> <@U1> <https://evil.example|click> & [x](https://evil.example) <at>all</at>\n\u202Etxt";
  const data = {
    target: EVIL,
    listing_name: EVIL,
    label: EVIL,
    text: EVIL,
    severity: "high",
    delist_url: "javascript:alert(1)",
  };

  test("makes no mentions and links in Slack", () => {
    const message = slack(bodyOf("blacklist.listed", data));
    for (const text of [message.text, textOf(message)]) {
      expect(text).not.toMatch(/<(?!https:\/\/verify\.example\.org\/)/);
      expect(text).toContain("&lt;!channel&gt;");
      expect(text).not.toContain("\u202E");
    }
    expect(textOf(message)).not.toContain("javascript:");
  });

  test("is plain text without links in Teams", () => {
    const { content } = teams(bodyOf("blacklist.listed", data)).attachments[0] ?? {};
    expect(content?.actions ?? []).toEqual([]);
    expect(content?.body.every(({ inlines }) => inlines.every(({ type }) => type === "TextRun"))).toBe(true);
  });

  test("is cut when it is long, however it is escaped", () => {
    const long = "&".repeat(100_000);
    const many = Object.fromEntries(
      ["target", "listing_name", "label", "text", "meaning", "reason", "name"].map((field) => [field, long]),
    );
    slack(bodyOf("blacklist.listed", many));
    expect(Buffer.byteLength(JSON.stringify(teams(bodyOf("blacklist.listed", many))))).toBeLessThan(TEAMS_BYTES_MAX);
  });

  test("does not end a link early", () => {
    const url = "https://list.example/?a=|<b>";
    expect(textOf(slack(bodyOf("blacklist.listed", { delist_url: url })))).not.toMatch(/\|[^D]/);
  });
});

describe("a chat", () => {
  const newHarness = createWebhookHarness();
  const newReceiver = createReceivers();

  test("receives one message per second, whatever the subjects", async () => {
    const receiver = newReceiver();
    const harness = newHarness({ zone: { "hooks.slack.com": { A: ["127.0.0.1"] } } });
    const url = receiver.url.replace("/hook", "/services/T0/B0/x").replace("127.0.0.1", "hooks.slack.com");
    const ids = ["a", "b", "c"].map((name) =>
      harness.event(url, {}, { accountId: "account", mode: "live", subject: `target:${name}` }),
    );
    harness.dispatcher.start();
    for (const count of [1, 2, 3]) {
      await receiver.untilReceived(count);
      await until(() => harness.dispatcher.running === 0);
      expect(receiver.received).toHaveLength(count);
      await harness.clock.advance(1_000);
    }
    expect(ids.map((id) => harness.find(id).status)).toEqual(["delivered", "delivered", "delivered"]);
    slackSchema.parse(JSON.parse(receiver.received[0]?.body ?? ""));
  });

  test("of Teams that responds 200 with a failure did not accept the event", async () => {
    const receiver = newReceiver();
    const harness = newHarness({ zone: { "acme.webhook.office.com": { A: ["127.0.0.1"] } } });
    const said = "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429";
    receiver.answer(() => new Response(said));
    const id = harness.event(receiver.url.replace("127.0.0.1", "acme.webhook.office.com"));
    harness.dispatcher.start();
    await harness.untilAttempts(id, 1);
    expect(harness.find(id)).toMatchObject({ status: "pending", lastHttpStatus: 200, lastAnswer: said });
  });
});
