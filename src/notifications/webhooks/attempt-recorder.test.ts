import { expect, test } from "bun:test";
import { createWebhookHarness, deliveryResult } from "../../testing/webhook-harness.ts";
import { REJECTIONS_MAX } from "./attempt-recorder.ts";
import { DELIVERY_ATTEMPTS_MAX } from "./send.ts";

const newHarness = createWebhookHarness();
const DAY_MS = 24 * 60 * 60 * 1000;

test.each([
  ["gone", 1, "is gone"],
  ["rejected", REJECTIONS_MAX, "rejected by its receiver"],
  ["delivered", DELIVERY_ATTEMPTS_MAX, "failed after"],
] as const)(
  "the log names the host of a URL, never its path, query or password: %s",
  async (how, attempts, message) => {
    const result = deliveryResult({ [how]: how !== "delivered", problem: "It failed." });
    const harness = newHarness({ sender: () => async () => result });
    const id = harness.event("https://user:pass-word@hooks.example:8443/path-token?query=token");
    harness.dispatcher.start();
    for (let attempt = 1; attempt <= attempts; attempt++) {
      await harness.untilAttempts(id, attempt);
      if (attempt < attempts) await harness.skip(DAY_MS);
    }
    expect(harness.logged.join("\n")).toContain(message);
    for (const line of harness.logged) {
      expect(JSON.parse(line)).toMatchObject({ host: "hooks.example:8443" });
      expect(line).not.toMatch(/token|pass-word|user/);
    }
  },
);
