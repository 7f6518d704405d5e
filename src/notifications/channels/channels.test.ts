import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { EVENT_DOCS } from "../../service/event-docs.ts";
import type { NotificationChannel, ChannelMessage, ChannelRequest } from "./channel.ts";
import { CHANNELS, channelOf, channelProblem, formatOf, hideSecrets, maskUrl } from "./channels.ts";
import { eventIncident, eventMessage } from "./message.ts";

const URLS = {
  slack: "https://hooks.slack.com/services/T000/B000/abcdefghijklmnopqrstuvwx",
  teams: "https://prod-1.westeurope.logic.azure.com/workflows/x/triggers/manual/paths/invoke?sig=abcdefghijklmnopqrst",
  discord: "https://discord.com/api/webhooks/123456789/abcdefghijklmnopqrstuvwxyz_-ABCDEF",
  telegram: "https://api.telegram.org/bot123456:AAabcdefghijklmnopqrstuvwxyz1234567/sendMessage?chat_id=-100123",
  ntfy: "https://ntfy.example.com/postwarden-alerts?channel=ntfy&token=tk_abcdefghijklmnopqrstuvwxyz123",
  pagerduty: "https://events.eu.pagerduty.com/v2/enqueue?routing_key=abcdefghijklmnopqrstuvwxyz012345",
  opsgenie: "https://api.eu.opsgenie.com/v2/alerts?apiKey=01234567-89ab-cdef-0123-456789abcdef",
} as const satisfies Record<NotificationChannel["name"], string>;

const requestOf = (name: NotificationChannel["name"], message: ChannelMessage): ChannelRequest => {
  const channel = CHANNELS.find((one) => one.name === name);
  if (channel === undefined) throw new Error(name);
  return channel.request(new URL(URLS[name]), message);
};

const bodyOf = (type: string, data: object) =>
  JSON.stringify({ type, timestamp: "2026-01-01T00:00:00.000Z", data: { mode: "live", ...data } });
const CONTEXT = { baseUrl: "https://verify.example.org", docs: EVENT_DOCS };
const exampleOf = (type: string): object => {
  const example = EVENT_DOCS.find((doc) => doc.type === type)?.example;
  if (typeof example !== "object" || example === null) throw new Error(type);
  return example;
};

describe("a URL", () => {
  test.each(Object.entries(URLS))("of %s is recognized and complete", (name, url) => {
    expect(formatOf(url)).toBe(name as NotificationChannel["name"]);
    expect(channelProblem(url)).toBeNull();
  });

  test.each([
    ["https://ptb.discord.com/api/v10/webhooks/1/abc?thread_id=5", "discord", true],
    ["https://discord.com/api/webhooks/1/abc/slack", "discord", false],
    ["https://discord.com/channels/1/2", "discord", false],
    ["https://discord.com.evil.example/api/webhooks/1/abc", "standard", true],
    ["https://api.telegram.org/bot1:AAabcdefghijklmnopqrstuvwxyz/sendMessage?chat_id=@channel", "telegram", true],
    ["https://api.telegram.org/bot1:AAabcdefghijklmnopqrstuvwxyz/sendMessage", "telegram", false],
    ["https://api.telegram.org/bot1:AAabcdefghijklmnopqrstuvwxyz/sendMessage?chat_id=me", "telegram", false],
    ["https://api.telegram.org/bot1:AAabcdefghijklmnopqrstuvwxyz/getMe?chat_id=5", "telegram", false],
    [
      "https://api.telegram.org/bot1:AAabcdefghijklmnopqrstuvwxyz/sendMessage?chat_id=5&message_thread_id=x",
      "telegram",
      false,
    ],
    ["https://ntfy.sh/alerts", "ntfy", true],
    ["https://ntfy.sh/", "ntfy", false],
    ["https://ntfy.sh/alerts?token=secret", "ntfy", false],
    ["https://ntfy.example.com/alerts", "standard", true],
    ["https://ntfy.example.com/a/b?channel=ntfy", "ntfy", false],
    ["https://events.pagerduty.com/v2/enqueue?routing_key=abcdefghijklmnopqrstuvwxyz012345", "pagerduty", true],
    ["https://events.pagerduty.com/v2/enqueue", "pagerduty", false],
    ["https://events.pagerduty.com/v2/enqueue?routing_key=short", "pagerduty", false],
    ["https://api.opsgenie.com/v2/alerts?apiKey=01234567-89ab-cdef-0123-456789abcdef", "opsgenie", true],
    ["https://api.atlassian.com/jsm/ops/integration/v2/alerts?apiKey=0123456789abcdefghij", "opsgenie", true],
    ["https://api.opsgenie.com/v2/alerts", "opsgenie", false],
    ["https://api.atlassian.com/other", "standard", true],
  ])("%s is of %s, complete: %p", (url, format, isComplete) => {
    expect([formatOf(url), channelProblem(url) === null]).toEqual([format as NotificationChannel["name"], isComplete]);
  });

  test.each([
    [URLS.slack, "https://hooks.slack.com/services/T000/B000/…uvwx"],
    [URLS.teams, "https://prod-1.westeurope.logic.azure.com/workflows/x/triggers/manual/paths/invoke?sig=…qrst"],
    [URLS.discord, "https://discord.com/api/webhooks/123456789/…CDEF"],
    [URLS.telegram, "https://api.telegram.org/bot123456:…4567/sendMessage?chat_id=-100123"],
    [URLS.ntfy, "https://ntfy.example.com/postwarden-alerts?channel=ntfy&token=…z123"],
    ["https://ntfy.sh/alerts", "https://ntfy.sh/…"],
    [URLS.pagerduty, "https://events.eu.pagerduty.com/v2/enqueue?routing_key=…2345"],
    [URLS.opsgenie, "https://api.eu.opsgenie.com/v2/alerts?apiKey=…cdef"],
    ["https://example.com/hook?token=1", "https://example.com/hook?token=1"],
  ])("%s is shown as %s", (url, shown) => expect(maskUrl(url)).toBe(shown));

  test("is hidden in what a service responds", () => {
    const html = `<p>No such page: ${new URL(URLS.telegram).pathname}</p>`;
    expect(hideSecrets(html, URLS.telegram)).toBe("<p>No such page: /bot123456:…4567/sendMessage</p>");
  });
});

// What each service accepts, by its documentation.
const text = (max: number) => z.string().min(1).max(max);
const embed = z.strictObject({
  title: text(256),
  url: z.url().optional(),
  description: text(4_096).optional(),
  color: z.int().min(0).max(0xffffff),
  fields: z.array(z.strictObject({ name: text(256), value: text(1_024) })).max(25),
  timestamp: z.iso.datetime(),
});
const severities = z.enum(["critical", "error", "warning", "info"]);
const details = z.record(z.string(), z.string());
const pdLinks = z.array(z.strictObject({ href: z.url(), text: z.string() }));
const pdPayload = z.strictObject({
  summary: text(1_024),
  source: text(255),
  timestamp: z.iso.datetime(),
  custom_details: details,
});
const bytes = (max: number) => z.string().refine((one) => Buffer.byteLength(one) <= max);

const SCHEMAS = {
  discord: z
    .strictObject({ allowed_mentions: z.strictObject({ parse: z.tuple([]) }), embeds: z.tuple([embed]) })
    .refine(({ embeds: [{ title, description = "", fields }] }) => {
      const texts = [title, description, ...fields.flatMap(({ name, value }) => [name, value])];
      return texts.join("").length <= 6_000;
    }),
  telegram: z.strictObject({
    chat_id: z.string().min(1),
    message_thread_id: z.int().optional(),
    text: text(4_096),
    parse_mode: z.literal("HTML"),
    link_preview_options: z.strictObject({ is_disabled: z.literal(true) }),
    disable_notification: z.boolean(),
  }),
  ntfy: z.strictObject({
    topic: z.string().regex(/^[\w-]{1,64}$/),
    title: bytes(250),
    message: bytes(4_096),
    priority: z.int().min(1).max(5),
    tags: z.array(z.string()),
    click: z.url().optional(),
    actions: z.array(z.strictObject({ action: z.literal("view"), label: z.string(), url: z.url() })).max(3),
  }),
  pagerduty: z.union([
    z.strictObject({
      routing_key: z.string().length(32),
      event_action: z.enum(["trigger", "resolve"]),
      dedup_key: text(255).optional(),
      payload: pdPayload.extend({ severity: severities, class: z.string() }),
      links: pdLinks,
      client: z.string(),
    }),
    z.strictObject({ routing_key: z.string().length(32), payload: pdPayload, links: pdLinks }),
  ]),
  opsgenie: z.union([
    z.strictObject({
      message: text(130),
      alias: text(512).optional(),
      description: text(15_000),
      entity: text(512),
      details: details.refine((all) => Object.entries(all).flat().join("").length <= 8_000),
      tags: z.array(text(50)).max(20),
      priority: z.enum(["P1", "P2", "P3", "P4", "P5"]),
      source: text(100),
    }),
    z.strictObject({ source: text(100), note: text(25_000) }),
  ]),
} as const;
const NEW = Object.keys(SCHEMAS) as ReadonlyArray<keyof typeof SCHEMAS>;
const parsed = (name: keyof typeof SCHEMAS, message: ChannelMessage): unknown =>
  SCHEMAS[name].parse(JSON.parse(requestOf(name, message).body));

describe.each(NEW)("a message of %s", (name) => {
  test.each(EVENT_DOCS.map(({ type }) => type))("about %s is within its limits", (type) => {
    parsed(name, eventMessage(bodyOf(type, exampleOf(type)), CONTEXT));
  });

  // Texts that grow when they are escaped, in every field that is shown, alone and all together.
  const LONG = ["&", "<", "*", "\\", "@", "é", "😀", "\u202E", '"', "\u0000", "\uD800", "a.b/"].map((part) =>
    part.repeat(20_000),
  );
  const FIELDS = [
    ...["target", "listing_name", "label", "text", "meaning", "reason", "name", "domain", "remedy", "record"],
    ...["previous_record", "message", "category", "status", "listed_on", "list_name", "checked_at"],
  ];
  test.each(LONG.map((long) => [long.slice(0, 4), long] as const))("is cut when texts of %j are long", (_, long) => {
    const all = Object.fromEntries(FIELDS.map((field) => [field, long]));
    for (const type of ["blacklist.listed", "blacklist.delisted", "dmarc.record_changed", "unknown.type"])
      parsed(name, eventMessage(bodyOf(type, all), CONTEXT));
  });

  test("is cut wherever the limit falls", () => {
    for (let length = 0; length < 400; length += 7)
      parsed(
        name,
        eventMessage(bodyOf("blacklist.listed", { target: "x".repeat(length) + "&<😀".repeat(200) }), CONTEXT),
      );
  });
});

describe("text of outsiders", () => {
  const EVIL =
    "@everyone @here <@1> <!channel> [click](https://evil.example) <b>b</b> **bold** `code` ||s|| /start #tag </code><a href=x>\n# Title";
  const message = eventMessage(
    bodyOf("blacklist.listed", {
      ...exampleOf("blacklist.listed"),
      target: EVIL,
      listing_name: EVIL,
      text: EVIL,
      label: EVIL,
    }),
    CONTEXT,
  );

  test("makes no mentions, Markdown or links in Discord", () => {
    const { embeds } = SCHEMAS.discord.parse(parsed("discord", message));
    const [{ title, fields }] = embeds;
    for (const shown of [title, ...fields.map(({ value }) => value)])
      // Every mark has an odd number of backslashes before it.
      expect(shown.replace(/\\[^0-9A-Za-z\s]/g, "")).not.toMatch(/[\\*_~`|<>#[\]()@:]/);
  });

  test("makes no tags in Telegram, and no link, mention or command in plain text", () => {
    const { text: html } = SCHEMAS.telegram.parse(parsed("telegram", message));
    const tags = html.match(/<[^>]*>/g) ?? [];
    const known = /^(<\/?b>|<\/?code>|<\/a>|<a href="https:\/\/(verify\.example\.org|www\.spamcop\.net)\/[^"<>]*">)$/;
    expect(tags.filter((tag) => !known.test(tag))).toEqual([]);
    const plain = html.replace(/<code>[^<]*<\/code>/g, "").replace(/<[^>]*>/g, "");
    expect(plain).toContain("@\u2060everyone");
    expect(plain).not.toMatch(/[@#/][A-Za-z]/);
  });

  test("is plain text in ntfy, PagerDuty and Opsgenie", () => {
    expect(requestOf("ntfy", message).body).not.toContain("markdown");
    expect(requestOf("ntfy", message).headers).toEqual({ authorization: "Bearer tk_abcdefghijklmnopqrstuvwxyz123" });
    const { description } = z.object({ description: z.string() }).parse(parsed("opsgenie", message));
    expect(description).not.toMatch(/[<>]|\]\(/);
  });

  test("adds no header, parameter or field", () => {
    for (const name of NEW) {
      const { url, headers = {} } = requestOf(name, message);
      expect(url).not.toContain("evil");
      expect(Object.values(headers).join("")).not.toMatch(/[\r\n]|evil/);
    }
  });
});

describe("an incident", () => {
  const listed = eventMessage(bodyOf("blacklist.listed", exampleOf("blacklist.listed")), CONTEXT);
  const delisted = eventMessage(bodyOf("blacklist.delisted", exampleOf("blacklist.delisted")), CONTEXT);
  const pagerduty = (message: ChannelMessage) => {
    const { url, body } = requestOf("pagerduty", message);
    return { url, ...z.record(z.string(), z.unknown()).parse(JSON.parse(body)) };
  };

  test("is triggered and resolved in PagerDuty by one key", () => {
    const [begin, end] = [pagerduty(listed), pagerduty(delisted)];
    expect(begin).toMatchObject({
      url: "https://events.eu.pagerduty.com/v2/enqueue",
      event_action: "trigger",
      dedup_key: expect.stringMatching(/^[0-9a-f]{64}$/),
      payload: { severity: "error", source: "198.51.100.7", summary: "198.51.100.7 is listed on SpamCop SCBL" },
    });
    expect(end).toMatchObject({ event_action: "resolve", dedup_key: listed.incident?.key });
  });

  test("is created and closed in Opsgenie by one alias", () => {
    expect(JSON.parse(requestOf("opsgenie", listed).body)).toMatchObject({
      alias: listed.incident?.key,
      priority: "P2",
    });
    expect(requestOf("opsgenie", delisted)).toMatchObject({
      url: `https://api.eu.opsgenie.com/v2/alerts/${listed.incident?.key}/close?identifierType=alias`,
      headers: { authorization: "GenieKey 01234567-89ab-cdef-0123-456789abcdef" },
    });
  });

  test("is not opened by an event that is no problem", () => {
    const changed = eventMessage(bodyOf("dmarc.record_changed", exampleOf("dmarc.record_changed")), CONTEXT);
    expect(changed.incident).toBeNull();
    expect(pagerduty(changed)).toMatchObject({ url: "https://events.eu.pagerduty.com/v2/change/enqueue" });
    expect(pagerduty(changed)).not.toHaveProperty("event_action");
    expect(JSON.parse(requestOf("opsgenie", changed).body)).toMatchObject({ priority: "P5" });
    // The key of an orchestration takes no change events.
    const url = new URL("https://events.pagerduty.com/v2/enqueue?routing_key=Rbcdefghijklmnopqrstuvwxyz012345");
    const request = channelOf(url.href)?.request(url, changed);
    expect(request?.url).toBe("https://events.pagerduty.com/v2/enqueue");
    expect(JSON.parse(request?.body ?? "")).toMatchObject({ event_action: "trigger", payload: { severity: "info" } });
  });

  const key = (type: string, data: object) => {
    const incident = eventIncident(bodyOf(type, { ...exampleOf(type), ...data }), EVENT_DOCS);
    return incident === null ? null : `${incident.ends ? "ends" : "begins"} ${incident.key}`;
  };
  test.each([
    ["blacklist.list_unusable", {}, "blacklist.list_usable", {}],
    ["dmarc.status_changed", { status: "action_required" }, "dmarc.status_changed", { status: "active" }],
    ["dmarc.tls_failures", { state: "began" }, "dmarc.tls_failures", { state: "ended" }],
    ["dmarc.failure_spike", { state: "started" }, "dmarc.failure_spike", { state: "ended" }],
  ])("%s %j is ended by %s %j", (began, before, ended, after) => {
    expect(key(began, before)).toStartWith("begins ");
    expect(key(ended, after)).toBe((key(began, before) ?? "").replace("begins", "ends"));
  });

  test("of another target, mode or test is another one", () => {
    const keys = [{}, { target: "192.0.2.9" }, { listing: "other" }, { mode: "test" }, { test: true }].map((data) =>
      key("blacklist.listed", data),
    );
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("of a pending domain is none", () => expect(key("dmarc.status_changed", { status: "pending" })).toBeNull());
});

describe("a response", () => {
  const read = (name: NotificationChannel["name"], status: number, body: unknown) =>
    CHANNELS.find((one) => one.name === name)?.read({
      status,
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const HTML = "<html><body>Bad gateway</body></html>";

  test.each([
    ["slack", 200, "ok", "accepted"],
    ["slack", 404, "no_service", "gone"],
    ["slack", 403, "invalid_payload", "refused"],
    ["teams", 202, "", "accepted"],
    ["teams", 200, "Webhook message delivery failed with error", "failed"],
    ["discord", 204, "", "accepted"],
    ["discord", 404, { code: 10_015, message: "Unknown Webhook" }, "gone"],
    ["discord", 401, { code: 50_027 }, "gone"],
    ["discord", 400, { embeds: ["0"] }, "refused"],
    ["telegram", 200, { ok: true, result: {} }, "accepted"],
    ["telegram", 200, HTML, "failed"],
    ["telegram", 401, { ok: false, description: "Unauthorized" }, "gone"],
    ["telegram", 403, { ok: false, description: "Forbidden: bot was blocked by the user" }, "gone"],
    ["telegram", 403, { ok: false, description: "Forbidden: bot was kicked from the group chat" }, "gone"],
    ["telegram", 400, { ok: false, description: "Bad Request: chat not found" }, "refused"],
    ["ntfy", 200, { id: "x", event: "message" }, "accepted"],
    ["ntfy", 200, HTML, "failed"],
    ["ntfy", 403, { code: 40_301, error: "forbidden" }, "refused"],
    ["pagerduty", 202, { status: "success", dedup_key: "x" }, "accepted"],
    ["pagerduty", 200, HTML, "failed"],
    ["pagerduty", 400, { status: "invalid event", errors: ["Invalid routing key"] }, "gone"],
    ["pagerduty", 400, { status: "invalid event", errors: ["'payload' is missing"] }, "refused"],
    ["opsgenie", 202, { result: "Request will be processed", requestId: "x" }, "accepted"],
    ["opsgenie", 200, HTML, "failed"],
    ["opsgenie", 401, { message: "Could not authenticate" }, "gone"],
    ["opsgenie", 422, { message: "Request body is not processable" }, "refused"],
  ] as const)("of %s %i %j is %s", (name, status, body, verdict) => {
    expect(read(name, status, body)?.verdict).toBe(verdict);
  });

  test.each(CHANNELS.map(({ name }) => name))("of %s with an error of a server or proxy is tried again", (name) => {
    for (const status of [301, 302, 408, 429, 500, 502, 503, 504])
      expect(read(name, status, HTML)?.verdict).toBe("failed");
  });

  test.each([
    ["discord", { retry_after: 1.337 }, 1_337],
    ["telegram", { ok: false, parameters: { retry_after: 31 } }, 31_000],
    ["ntfy", { code: 42_901 }, 60_000],
    ["pagerduty", "", 60_000],
    ["opsgenie", { message: "Too many" }, 60_000],
  ] as const)("429 of %s with %j asks to wait for %i ms", (name, body, waitMs) => {
    expect(read(name, 429, body)?.waitMs).toBe(waitMs);
  });

  test("of a group that became a supergroup names its new number", () => {
    const body = {
      ok: false,
      description: "Bad Request: group chat was upgraded",
      parameters: { migrate_to_chat_id: -100 },
    };
    expect(read("telegram", 400, body)?.hint).toContain("chat_id=-100");
  });
});
