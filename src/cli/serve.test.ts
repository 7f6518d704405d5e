import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createCommandLine } from "../testing/command-line.ts";

const { dataDir, run } = createCommandLine();

interface Served {
  readonly url: string;
  readonly liveKey: string;
  readonly testKey: string;
  /** Everything said up to now. */
  readonly said: readonly string[];
}

/** Runs `serve` on a port of the system's choice while `work` goes on, and then asks it to end. */
const whileServing = async (settings: Record<string, string>, work: (served: Served) => Promise<void>) => {
  const stop = Promise.withResolvers<string>();
  const listening = Promise.withResolvers<string>();
  const said: string[] = [];
  const ended = run(["serve"], {
    settings: { PORT: "0", DNS_SERVERS: "127.0.0.1:9", ...settings },
    heard(line) {
      said.push(line);
      const url = /"message":"listening","url":"([^"]+)"/.exec(line)?.[1];
      if (url !== undefined) listening.resolve(url);
    },
    untilSignal: () => stop.promise,
  });
  const url = await Promise.race([listening.promise, ended.then(({ err }) => Promise.reject(new Error(err)))]);
  const keyOf = (mode: string) => new RegExp(`pw_${mode}_\\w+`).exec(said.join("\n"))?.[0] ?? "";
  try {
    await work({ url, liveKey: keyOf("live"), testKey: keyOf("test"), said });
  } finally {
    stop.resolve("SIGTERM");
  }
  return ended;
};

const verify = (url: string, key: string, email: string, query = "") =>
  fetch(`${url}/v1/email-verifications${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ email }),
  });

describe("serve", () => {
  test("on an empty directory makes an account, shows two keys and a curl line once, and they work", async () => {
    const settings = { DATA_DIR: join(dataDir, "..", "first") };
    let keys = { liveKey: "", testKey: "" };
    const first = await whileServing(settings, async ({ url, liveKey, testKey, said }) => {
      keys = { liveKey, testKey };
      expect((await verify(url, testKey, "mailbox_exists@any.example")).status).toBe(200);
      expect((await verify(url, liveKey, "no address")).status).toBe(200);
      expect(said.join("\n")).toContain(`curl -s '${url}/v1/email-verifications?timeout=60'`);
    });
    expect(first.status).toBe(0);
    const second = await whileServing(settings, async ({ url }) => {
      expect((await verify(url, keys.testKey, "mailbox_exists@any.example")).status).toBe(200);
    });
    expect(second).toMatchObject({ status: 0, out: "" });
  });

  test("shows the keys of the new account as JSON when asked", async () => {
    const settings = { DATA_DIR: join(dataDir, "..", "json"), PORT: "0" };
    const { status, json } = await run(["serve", "--json"], { settings });
    expect(status).toBe(0);
    expect(json).toEqual({
      account: "default",
      live_key: expect.stringMatching(/^pw_live_\w{49}$/),
      test_key: expect.stringMatching(/^pw_test_\w{49}$/),
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    });
  });

  test("lets a waiting request go with 202 when it is asked to end", async () => {
    const waiting: Promise<Response>[] = [];
    const ended = await whileServing({}, async ({ url, testKey }) => {
      waiting.push(verify(url, testKey, "pending@any.example", "?timeout=60"));
      const headers = { authorization: `Bearer ${testKey}` };
      const list = async () => (await fetch(`${url}/v1/email-verifications`, { headers })).text();
      for (let look = 0; look < 1_000 && !(await list()).includes("pending@any.example"); look++);
    });
    expect(ended.status).toBe(0);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([202]);
  });

  test("keeps a second server off the same directory, and gives the directory back at the end", async () => {
    await whileServing({}, async () => {
      const second = await run(["serve", "--json"], { settings: { PORT: "0" } });
      expect(second).toMatchObject({ status: 1, out: "" });
      expect(JSON.parse(second.err)).toMatchObject({ error: "already_running" });
    });
    expect((await whileServing({}, async () => undefined)).status).toBe(0);
  });

  test("takes accounts, keys and revocations that the command line makes meanwhile", async () => {
    await whileServing({}, async ({ url }) => {
      await run(["accounts", "create", "meanwhile"]);
      const { json } = await run(["keys", "create", "--account", "meanwhile", "--mode", "test", "--json"]);
      const key = String(json.key);
      expect((await verify(url, key, "a@any.example")).status).toBe(200);
      await run(["keys", "revoke", String(json.id)]);
      expect((await verify(url, key, "a@any.example")).status).toBe(401);
    });
  });

  test("logs who sent a request at level debug, believing X-Forwarded-For of trusted proxies only", async () => {
    const clientsOf = async (settings: Record<string, string>) => {
      const lines: string[] = [];
      await whileServing(settings, async ({ url, said }) => {
        const headers = { "x-forwarded-for": "198.51.100.1, 203.0.114.9" };
        expect((await fetch(`${url}/healthz`, { headers })).status).toBe(200);
        const answered = () => said.filter((line) => line.includes('"path":"/healthz"'));
        // The line comes after the answer: others are asked for until it is there.
        for (let look = 0; look < 100 && answered().length === 0; look++) await fetch(`${url}/readyz`);
        lines.push(...answered());
      });
      return lines.map((line): unknown => JSON.parse(line).client);
    };
    expect(await clientsOf({ LOG_LEVEL: "debug" })).toEqual(["127.0.0.1"]);
    expect(await clientsOf({ LOG_LEVEL: "debug", TRUSTED_PROXIES: "127.0.0.0/8" })).toEqual(["203.0.114.9"]);
    expect(await clientsOf({ TRUSTED_PROXIES: "127.0.0.0/8" })).toEqual([]);
  });

  test("answers a body that is far too long with our 413, declared or not", async () => {
    await whileServing({}, async ({ url }) => {
      const key = String((await run(["keys", "create", "--account", "default", "--mode", "test", "--json"])).json.key);
      const answer = await verify(url, key, "x".repeat(5 * 1024 * 1024));
      expect(answer.status).toBe(413);
      expect(answer.headers.get("x-request-id")).not.toBeNull();
      expect(await answer.json()).toMatchObject({ error: "payload_too_large" });
    });
  });

  test("says so when the port is taken, and when the certificate cannot be read", async () => {
    await whileServing({}, async ({ url }) => {
      const settings = { PORT: new URL(url).port, DATA_DIR: join(dataDir, "..", "port") };
      const taken = await run(["serve"], { settings });
      expect(taken.status).toBe(1);
      expect(taken.err).toContain(`postwarden: Cannot listen on 127.0.0.1:${settings.PORT}: `);
    });
    const tls = { TLS_CERT: join(dataDir, "none.pem"), TLS_KEY: join(dataDir, "none.key"), PORT: "0" };
    const unread = await run(["serve"], { settings: tls });
    expect(unread.status).toBe(1);
    expect(unread.err).toStartWith("postwarden: The TLS certificate or key cannot be read: ");
  });
});
