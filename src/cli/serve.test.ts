import { afterAll, afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { selfSignedCertificate } from "../foundation/net/self-signed-file.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { COMMIT, VERSION } from "../service/version.ts";

const { dataDir, run } = createCommandLine();

interface Served {
  readonly url: string;
  readonly liveKey: string;
  readonly testKey: string;
  /** What a SIGHUP does. */
  readonly hangUp: () => void;
  /** Everything said up to now. */
  readonly said: readonly string[];
}

/** Runs `serve` on a port of the system's choice while `work` goes on, and then asks it to end. */
const whileServing = async (
  settings: Record<string, string>,
  work: (served: Served) => Promise<void>,
  args: readonly string[] = [],
) => {
  const stop = Promise.withResolvers<string>();
  const listening = Promise.withResolvers<string>();
  const said: string[] = [];
  const hangups: Array<() => void> = [];
  const ended = run(["serve", ...args], {
    settings: { PORT: "0", DNS_SERVERS: "127.0.0.1:9", ...settings },
    onLine(line) {
      said.push(line);
      const url = /"message":"listening","url":"([^"]+)"/.exec(line)?.[1];
      if (url !== undefined) listening.resolve(url);
    },
    untilSignal: () => stop.promise,
    onHangup: (task) => void hangups.push(task),
  });
  const url = await Promise.race([listening.promise, ended.then(({ err }) => Promise.reject(new Error(err)))]);
  const keyOf = (mode: string) => new RegExp(`pw_${mode}_\\w+`).exec(said.join("\n"))?.[0] ?? "";
  try {
    await work({
      ...{ url, liveKey: keyOf("live"), testKey: keyOf("test"), said },
      hangUp() {
        for (const task of hangups) task();
      },
    });
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

  test("its links have the port that the system chose", async () => {
    await whileServing({ DATA_DIR: join(dataDir, "..", "links") }, async ({ url, testKey }) => {
      const post = async (path: string, body: unknown) => {
        const headers = { authorization: `Bearer ${testKey}` };
        const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
        return (await response.json()) as { readonly url: string; readonly domain: { readonly id: string } };
      };
      const { domain } = await post("/v1/dmarc/domains", { domain: "example.com" });
      const expires_at = new Date(Date.now() + 3_600_000).toISOString();
      expect((await post(`/v1/dmarc/domains/${domain.id}/report-links`, { expires_at })).url).toStartWith(`${url}/r/`);
    });
  });

  test("shows the keys of the new account as JSON when asked", async () => {
    const settings = { DATA_DIR: join(dataDir, "..", "json"), PORT: "0" };
    const { status, json } = await run(["serve", "--json"], { settings });
    expect(status).toBe(0);
    expect(json).toEqual({
      account: "default",
      live_key: expect.stringMatching(/^pw_live_\w{49}$/),
      test_key: expect.stringMatching(/^pw_test_\w{49}$/),
      setup_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/setup\/\w{43}$/),
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

  test("does not start with a GeoIP database that cannot be read, and names the setting and the file", async () => {
    const none = join(dataDir, "none.mmdb");
    const ended = await run(["serve", "--json"], { settings: { PORT: "0", GEOIP_DB: none } });
    expect(ended.status).toBe(1);
    const { error, message } = JSON.parse(ended.problem);
    expect(error).toBe("settings");
    expect(message).toContain(`POSTWARDEN_GEOIP_DB: ${none} cannot be used: no such file.`);
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

  test("reads the file of --env-file again at a SIGHUP: the log level and the trusted proxies change", async () => {
    const file = join(dataDir, "..", "reload.env");
    writeFileSync(file, "POSTWARDEN_LOG_LEVEL=info\n");
    const work = async ({ url, hangUp, said }: Served) => {
      const ask = () => fetch(`${url}/healthz`, { headers: { "x-forwarded-for": "203.0.114.9" } });
      const requests = () =>
        said.filter((line) => line.includes('"message":"request"')).map((line) => JSON.parse(line));
      await ask();
      expect(requests()).toEqual([]);
      writeFileSync(file, "POSTWARDEN_LOG_LEVEL=debug\n");
      hangUp();
      await ask();
      expect(requests()).toMatchObject([{ client: "127.0.0.1", path: "/healthz", status: 200 }]);
      writeFileSync(file, "POSTWARDEN_LOG_LEVEL=debug\nPOSTWARDEN_TRUSTED_PROXIES=127.0.0.0/8\n");
      hangUp();
      await ask();
      expect(requests().map(({ client }) => client)).toEqual(["127.0.0.1", "203.0.114.9"]);
      rmSync(file);
      hangUp();
      expect(said.at(-1)).toContain(`Settings file ${file}: no such file`);
    };
    expect((await whileServing({}, work, ["--env-file", file])).status).toBe(0);
  });

  test("begins its log with the version and the commit", async () => {
    const { err } = await whileServing({}, async () => undefined);
    const first = JSON.parse(err.split("\n")[0] ?? "");
    expect(first).toMatchObject({ level: "info", message: "starting", version: VERSION, commit: COMMIT });
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

  test("listens before it opens its database, also at the first start: without a port nothing is created", async () => {
    await whileServing({}, async ({ url }) => {
      const start = (name: string) =>
        run(["serve", "--json"], { settings: { PORT: new URL(url).port, DATA_DIR: join(dataDir, "..", name) } });
      expect(JSON.parse((await start("first-order")).problem).error).toBe("listen");
      expect(existsSync(join(dataDir, "..", "first-order", "postwarden.db"))).toBe(false);
      const broken = join(dataDir, "..", "later-order");
      mkdirSync(broken, { mode: 0o700 });
      writeFileSync(join(broken, "postwarden.db"), "no database");
      expect(JSON.parse((await start("later-order")).problem).error).toBe("listen");
    });
  });

  /** Runs `serve` and sends requests as soon as it listens; what was printed and answered, in order. */
  const whileLoading = async (settings: Record<string, string>, paths: readonly string[]) => {
    const order: string[] = [];
    const { serve } = Bun;
    const answered = Promise.withResolvers<void>();
    const listening = spyOn(Bun, "serve").mockImplementation(((options: Parameters<typeof serve>[0]) => {
      const server = serve(options);
      const ask = async (path: string) => void order.push(`${path} ${(await fetch(new URL(path, server.url))).status}`);
      void Promise.all(paths.map(ask)).then(() => answered.resolve(), answered.reject);
      return server;
    }) as typeof serve);
    const onLine = (line: string) => void (line.includes("pw_live_") && order.push("keys"));
    try {
      const { status } = await run(["serve"], { settings, onLine, untilSignal: async () => "SIGTERM" });
      await answered.promise;
      return { status, order };
    } finally {
      listening.mockRestore();
    }
  };

  test.each([
    ["a new directory", "order-new", ["keys"]],
    ["one that it knows", "order-data", []],
  ])("on %s, the first response comes before the service is loaded, and after the keys", async (_, name, keys) => {
    const settings = { DATA_DIR: join(dataDir, "..", name), PORT: "0" };
    if (keys.length === 0) await run(["accounts", "create", "anna"], { settings });
    // The signal has come already: what waits for the service is answered before it ends.
    const { status, order } = await whileLoading(settings, ["/healthz", "/readyz", "/v1/account"]);
    expect({ status, order }).toEqual({
      status: 0,
      order: [...keys, "/healthz 200", "/readyz 503", "/v1/account 401"],
    });
  });

  test("keys of a start that fails are printed again at the next", async () => {
    const settings = { DATA_DIR: join(dataDir, "..", "late-failure"), PORT: "0" };
    const failed = await run(["serve", "--json"], {
      settings: { ...settings, GEOIP_DB: join(dataDir, "none.mmdb") },
    });
    expect(failed.status).toBe(1);
    const [before, again] = [JSON.parse(failed.out), (await run(["serve", "--json"], { settings })).json];
    expect([again.live_key, again.test_key]).toEqual([before.live_key, before.test_key]);
    expect((await run(["serve", "--json"], { settings })).out).toBe("");
  });

  test("says so when the port is taken, and when the certificate cannot be read", async () => {
    await whileServing({}, async ({ url }) => {
      const settings = { PORT: new URL(url).port, DATA_DIR: join(dataDir, "..", "port") };
      const taken = await run(["serve"], { settings });
      expect(taken.status).toBe(1);
      expect(taken.err).toContain(
        `postwarden: Port ${settings.PORT} of 127.0.0.1 is in use by another program. Set POSTWARDEN_PORT to another one.`,
      );
      const elsewhere = await run(["serve"], { settings: { ...settings, HOST: "203.0.113.77" } });
      expect(elsewhere).toMatchObject({ status: 1 });
      expect(elsewhere.err).toContain('postwarden: POSTWARDEN_HOST: "203.0.113.77" is not an address of this machine.');
    });
    const tls = { TLS_CERT: join(dataDir, "none.pem"), TLS_KEY: join(dataDir, "none.key"), PORT: "0" };
    const unread = await run(["serve"], { settings: tls });
    expect(unread.status).toBe(1);
    expect(unread.problem).toStartWith("postwarden: The certificate or key for HTTPS cannot be read: ");
  });

  test("closes its port when the database cannot be used", async () => {
    const damaged = join(dataDir, "..", "damaged");
    mkdirSync(damaged, { mode: 0o700 });
    writeFileSync(join(damaged, "postwarden.db"), "no database".repeat(1_000), { mode: 0o600 });
    const port = await whileServing({}, async () => undefined).then(
      ({ err }) => /127\.0\.0\.1:(\d+)/.exec(err)?.[1] ?? "",
    );
    const settings = { PORT: port, DATA_DIR: damaged };
    for (const _ of ["first", "second"]) {
      const failed = await run(["serve", "--json"], { settings });
      expect({ status: failed.status, ...JSON.parse(failed.problem) }).toMatchObject({ status: 1, error: "database" });
    }
  });
});

describe("HTTPS", () => {
  const files = { TLS_CERT: join(dataDir, "..", "tls.pem"), TLS_KEY: join(dataDir, "..", "tls.key") };
  const install = (hostName: string) => {
    const { cert, key } = selfSignedCertificate(hostName, Date.now());
    writeFileSync(files.TLS_CERT, cert);
    writeFileSync(files.TLS_KEY, key);
  };

  /** Sends requests one after the other over one connection; the name in the certificate, and the status of each. */
  const overOneConnection = async (url: string, requests: readonly string[]) => {
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const statuses: string[] = [];
    for (const request of requests) {
      socket.write(request);
      let heard = "";
      while (!heard.includes("}")) heard += String((await once(socket, "data"))[0]);
      statuses.push(heard.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
    }
    const name = socket.getPeerCertificate().subjectaltname;
    socket.destroy();
    return { name, statuses };
  };
  const GET = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

  test("is served with the operator's certificate, several requests over one connection", async () => {
    install("first.example");
    const settings = { ...files, DATA_DIR: join(dataDir, "..", "https") };
    await whileServing(settings, async ({ url }) => {
      expect(url).toStartWith("https://127.0.0.1:");
      const requests = [GET, GET.replace("/healthz", "/nowhere"), GET];
      expect(await overOneConnection(url, requests)).toEqual({
        name: "DNS:first.example",
        statuses: ["200", "404", "200"],
      });
    });
  });

  test("takes over a renewed certificate at SIGHUP; one that is broken leaves the old one in its place", async () => {
    install("first.example");
    await whileServing(files, async ({ url, hangUp, said }) => {
      const nameNow = async () => (await overOneConnection(url, [GET])).name;
      install("second.example");
      expect(await nameNow()).toBe("DNS:first.example");
      hangUp();
      expect(await nameNow()).toBe("DNS:second.example");
      hangUp();
      expect(said.filter((line) => line.includes("HTTPS certificate was renewed"))).toHaveLength(1);
      const { cert } = selfSignedCertificate("third.example", Date.now());
      for (const broken of ["", cert, "-----BEGIN CERTIFICATE-----\nMII"]) {
        writeFileSync(files.TLS_CERT, broken);
        hangUp();
        expect(await nameNow()).toBe("DNS:second.example");
      }
      rmSync(files.TLS_CERT);
      hangUp();
      expect(await nameNow()).toBe("DNS:second.example");
      expect(said.filter((line) => line.includes("HTTPS certificate was not renewed"))).toHaveLength(4);
      install("fourth.example");
      hangUp();
      expect(await nameNow()).toBe("DNS:fourth.example");
    });
  });

  test("a request under way is answered although the certificate changes meanwhile", async () => {
    install("first.example");
    const settings = { ...files, DATA_DIR: join(dataDir, "..", "under-way") };
    const waiting: Promise<Response>[] = [];
    await whileServing(settings, async ({ url, testKey, hangUp, said }) => {
      const tls = { rejectUnauthorized: false };
      const headers = { authorization: `Bearer ${testKey}` };
      const body = JSON.stringify({ email: "pending@any.example" });
      const path = `${url}/v1/email-verifications`;
      waiting.push(fetch(`${path}?timeout=60`, { method: "POST", headers, body, tls }));
      const list = async () => (await fetch(path, { headers, tls })).text();
      for (let look = 0; look < 1_000 && !(await list()).includes("pending@any.example"); look++);
      install("second.example");
      hangUp();
      expect(said.join("\n")).toContain("HTTPS certificate was renewed");
    });
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([202]);
  });
});

describe("a proxy in the environment of the process", () => {
  const NAMES = ["HTTP_PROXY", "http_proxy", "ALL_PROXY"];
  const before = NAMES.map((name) => [name, process.env[name]] as const);
  const called: string[] = [];
  const listen = (name: string) =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch() {
        called.push(name);
        return new Response(null, { status: 204 });
      },
    });
  const [receiver, proxy] = [listen("receiver"), listen("proxy")];
  beforeEach(() => {
    called.length = 0;
    for (const name of NAMES) process.env[name] = `http://127.0.0.1:${proxy.port}`;
  });
  afterEach(() => {
    for (const [name, value] of before)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });
  afterAll(async () => {
    await Promise.all([receiver.stop(true), proxy.stop(true)]);
  });

  test("is not used for webhooks, and the log says so", async () => {
    const settings = { DATA_DIR: join(dataDir, "..", "proxy"), WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8" };
    const { err } = await whileServing(settings, async ({ url, testKey }) => {
      const answer = await fetch(`${url}/v1/webhooks/test`, {
        method: "POST",
        headers: { authorization: `Bearer ${testKey}` },
        body: JSON.stringify({ url: `http://127.0.0.1:${receiver.port}/hook` }),
      });
      expect(await answer.json()).toMatchObject({ delivered: true });
    });
    expect(called).toEqual(["receiver"]);
    expect(err).toContain('"message":"proxy environment variables are ignored"');
  });

  test("stays where POSTWARDEN_USE_PROXY_ENV is on", async () => {
    const settings = { DATA_DIR: join(dataDir, "..", "proxy-on"), PORT: "0", USE_PROXY_ENV: "on" };
    const { status, err } = await run(["serve"], { settings });
    expect(status).toBe(0);
    expect(err).not.toContain("are ignored");
    expect(process.env.HTTP_PROXY).toBe(`http://127.0.0.1:${proxy.port}`);
  });
});
