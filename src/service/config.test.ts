import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { Glob } from "bun";
import { CLIENT_VARIABLES, hasSettings, readConfig, settingsInForce } from "./config.ts";

/** The settings with one of them given, by its name without the prefix. */
const readOne = (name: string, value: string) => readConfig({ [`POSTWARDEN_${name}`]: value });

describe("without any setting", () => {
  test("every default is the contract's", () => {
    const config = readConfig({});
    expect(config).toMatchObject({
      ok: true,
      value: {
        dataDir: resolve("./data"),
        host: "127.0.0.1",
        port: 8080,
        baseUrl: null,
        tls: null,
        trustedProxies: [],
        dnsServers: null,
        mailFrom: "",
        smtpPort: 25,
        connectTimeoutMs: 10_000,
        replyTimeoutMs: 30_000,
        retryWaitsS: [60, 300, 900, 1800],
        connectionsMax: 500,
        connectionsPerHostMax: 4,
        rcptPerConnectionMax: 50,
        probeAllowNetworks: [],
        blocklistRetentionDays: 90,
        asnLookup: "dns",
        geoipPaths: [],
        logLevel: "info",
      },
    });
  });

  test("an empty value counts as not given, and names without the prefix are ignored", () => {
    const environment = {
      POSTWARDEN_PORT: "",
      POSTWARDEN_BASE_URL: "",
      PATH: "/bin",
      POSTWARDENPORT: "x",
      postwarden_port: "x",
    };
    expect(readConfig(environment)).toEqual(readConfig({}));
  });
});

describe("a good value", () => {
  test.each([
    ["PORT", "0", { port: 0 }],
    ["PORT", "65535", { port: 65_535 }],
    ["HOST", "::", { host: "::" }],
    ["BASE_URL", "https://verify.example.com/", { baseUrl: "https://verify.example.com" }],
    ["BASE_URL", "http://localhost:8080/prefix//", { baseUrl: "http://localhost:8080/prefix" }],
    ["TRUSTED_PROXIES", "10.0.0.0/8, fd00::/8", { trustedProxies: ["10.0.0.0/8", "fd00::/8"] }],
    ["DNS_SERVERS", "192.0.2.1", { dnsServers: [{ address: "192.0.2.1", port: 53 }] }],
    [
      "DNS_SERVERS",
      "127.0.0.1:5353,::1",
      {
        dnsServers: [
          { address: "127.0.0.1", port: 5353 },
          { address: "::1", port: 53 },
        ],
      },
    ],
    ["HELO_NAME", "mail.example.com", { heloName: "mail.example.com" }],
    ["HELO_NAME", "[192.0.2.1]", { heloName: "[192.0.2.1]" }],
    ["HELO_NAME", "[IPv6:2001:db8::1]", { heloName: "[IPv6:2001:db8::1]" }],
    ["MAIL_FROM", "probe@example.com", { mailFrom: "probe@example.com" }],
    ["MAIL_FROM", "<>", { mailFrom: "" }],
    ["SMTP_PORT", "2525", { smtpPort: 2525 }],
    ["BLOCKLIST_RETENTION_DAYS", "7", { blocklistRetentionDays: 7 }],
    ["VERIFICATION_RETENTION_DAYS", "off", { verificationRetentionDays: null, evidenceRetentionDays: 30 }],
    ["EVIDENCE_RETENTION_DAYS", "0", { evidenceRetentionDays: null, verificationRetentionDays: 400 }],
    ["LIST_RETENTION_DAYS", "7", { listRetentionDays: 7, listFileRetentionDays: 30 }],
    ["LIST_FILE_RETENTION_DAYS", "36500", { listFileRetentionDays: 36_500, listRetentionDays: 400 }],
    ["REPORT_MAIL_RETENTION_DAYS", "14", { reportMailRetentionDays: 14 }],
    ["WORKERS", "0", { workers: 0 }],
    ["GREYLIST_RETRIES_S", "1, 2 ,3", { retryWaitsS: [1, 2, 3] }],
    ["MAX_CONNECTIONS", "20000", { connectionsMax: 20_000 }],
    ["PROBE_ALLOW_NETWORKS", "127.0.0.0/8,::1/128", { probeAllowNetworks: ["127.0.0.0/8", "::1/128"] }],
    ["REPORT_HOST", "Reports.Example.com.", { reportHost: "reports.example.com", reportListen: null }],
    ["REPORT_HOST", "bücher.example", { reportHost: "xn--bcher-kva.example" }],
    ["BRAND_NAME", " Hofmail & Söhne ", { brandName: "Hofmail & Söhne", brandLogoPath: null }],
    ["BRAND_LOGO", "/etc/logo.svg", { brandLogoPath: "/etc/logo.svg", brandName: "Postwarden" }],
    ["ASN_LOOKUP", "off", { asnLookup: "off" }],
    ["GEOIP_DB", "/var/a.mmdb, /var/b c.mmdb", { geoipPaths: ["/var/a.mmdb", "/var/b c.mmdb"] }],
    ["LOG_LEVEL", "silent", { logLevel: "silent" }],
    ["DATA_DIR", "/var/lib/postwarden", { dataDir: "/var/lib/postwarden" }],
  ])("%s=%s is taken", (name, value, expected) => {
    expect(readOne(name, value)).toMatchObject({ ok: true, value: expected });
  });

  test("the certificate goes with its key", () => {
    const both = { POSTWARDEN_TLS_CERT: "/c.pem", POSTWARDEN_TLS_KEY: "/k.pem" };
    expect(readConfig(both)).toMatchObject({ ok: true, value: { tls: { certPath: "/c.pem", keyPath: "/k.pem" } } });
    for (const name of ["TLS_CERT", "TLS_KEY"]) {
      expect(readOne(name, "/x.pem")).toEqual({
        ok: false,
        error: ["Set both POSTWARDEN_TLS_CERT and POSTWARDEN_TLS_KEY, or neither."],
      });
    }
  });
});

describe("where DMARC reports come in", () => {
  const readBoth = (listen: string) =>
    readConfig({ POSTWARDEN_REPORT_HOST: "reports.example.com", POSTWARDEN_REPORT_LISTEN: listen });

  test.each([
    ["0.0.0.0:25", { address: "0.0.0.0", port: 25 }],
    ["[::]:2525", { address: "::", port: 2525 }],
    ["127.0.0.1:0", { address: "127.0.0.1", port: 0 }],
  ])("REPORT_LISTEN=%s", (text, reportListen) => {
    expect(readBoth(text)).toMatchObject({ ok: true, value: { reportListen } });
  });

  test.each(["25", "localhost:25", "::1:25", "[127.0.0.1]:25", "127.0.0.1:65536", "127.0.0.1"])(
    "REPORT_LISTEN=%s is refused",
    (text) => {
      expect(readBoth(text)).toEqual({
        ok: false,
        error: [`POSTWARDEN_REPORT_LISTEN: "${text}" is not an IP address with a port, such as 0.0.0.0:25 or [::]:25.`],
      });
    },
  );

  test("a listener without a report host is refused, and half a certificate", () => {
    expect(readOne("REPORT_LISTEN", "127.0.0.1:25")).toEqual({
      ok: false,
      error: ["POSTWARDEN_REPORT_LISTEN needs POSTWARDEN_REPORT_HOST, the domain of the report addresses."],
    });
    expect(readOne("REPORT_TLS_CERT", "/c.pem")).toMatchObject({ ok: false });
  });
});

describe("a bad value is refused in a sentence that begins with its name and says what would do", () => {
  test.each([
    ["PORT", "eighty", "a whole number from 0 to 65535"],
    ["PORT", "-1", "a whole number from 0 to 65535"],
    ["PORT", "65536", "a whole number from 0 to 65535"],
    ["PORT", "80.5", "a whole number from 0 to 65535"],
    ["PORT", " 80", "a whole number from 0 to 65535"],
    ["PORT", "99999999999999999999", "a whole number from 0 to 65535"],
    ["BASE_URL", "verify.example.com", "an http or https URL"],
    ["BASE_URL", "ftp://example.com", "an http or https URL"],
    ["BASE_URL", "https://example.com/?x=1", "an http or https URL"],
    ["BASE_URL", "https://user:secret@example.com", "an http or https URL"],
    ["TRUSTED_PROXIES", "10.0.0.0/33", '"10.0.0.0/33"'],
    ["TRUSTED_PROXIES", "10.0.0.0/8,everybody", '"everybody"'],
    ["DNS_SERVERS", "dns.example.com", '"dns.example.com"'],
    ["DNS_SERVERS", "192.0.2.1:0", '"192.0.2.1:0"'],
    ["HELO_NAME", "not a name", "a host name"],
    ["HELO_NAME", "-x.example.com", "a host name"],
    ["HELO_NAME", "mail.example.com\r\nRSET", "a host name"],
    ["HELO_NAME", "[not-an-ip]", "a host name"],
    ["HELO_NAME", "[999.1.1.1]", "a host name"],
    ["HELO_NAME", "[2001:db8::1]", "a host name"],
    ["MAIL_FROM", "nobody", "not an email address"],
    ["SMTP_PORT", "0", "a whole number from 1 to 65535"],
    ["BLOCKLIST_RETENTION_DAYS", "0", "a whole number from 1 to 3650"],
    ["EVIDENCE_RETENTION_DAYS", "-1", "a whole number of days from 1 to 36500, or off to keep the data"],
    ["LIST_RETENTION_DAYS", "36501", "a whole number of days from 1 to 36500"],
    ["LIST_FILE_RETENTION_DAYS", "never", "a whole number of days from 1 to 36500"],
    ["BLOCKLIST_RETENTION_DAYS", "90d", "a whole number from 1 to 3650"],
    ["SMTP_CONNECT_TIMEOUT_MS", "99", "a whole number from 100 to 120000"],
    ["SMTP_REPLY_TIMEOUT_MS", "600001", "a whole number from 100 to 600000"],
    ["GREYLIST_RETRIES_S", "60,soon", '"soon"'],
    ["GREYLIST_RETRIES_S", "0", "a number of seconds from 1 to 86400"],
    ["GREYLIST_RETRIES_S", "86401", "a number of seconds from 1 to 86400"],
    ["MAX_CONNECTIONS", "0", "a whole number from 1 to 20000"],
    ["MAX_CONNECTIONS_PER_HOST", "1001", "a whole number from 1 to 1000"],
    ["MAX_RCPT_PER_CONNECTION", "1", "a whole number from 2 to 10000"],
    ["PROBE_ALLOW_NETWORKS", "localhost", '"localhost"'],
    ["REPORT_HOST", "localhost", "a domain such as reports.example.com"],
    ["REPORT_HOST", "x@example.com", "a domain such as reports.example.com"],
    ["REPORT_HOST", `${"a.".repeat(100)}example.com`, "at most 200 characters"],
    ["ASN_LOOKUP", "on", "dns, off"],
    ["GEOIP_DB", "a,b,c,d,e,f,g,h,i", "at most 8 files"],
    ["METRICS_TOKEN", "0123456789abcdef0123456789abcde", "32 to 256 letters"],
    ["METRICS_TOKEN", `${"0123456789abcdef".repeat(2)} x`, "32 to 256 letters"],
    ["LOG_LEVEL", "verbose", "debug, info, warn, error, silent"],
  ])("%s=%j", (name, value, said) => {
    const config = readOne(name, value);
    if (config.ok) throw new Error(`${name}=${value} was taken`);
    expect(config.error).toHaveLength(1);
    const [sentence = ""] = config.error;
    expect(sentence).toStartWith(`POSTWARDEN_${name}: `);
    expect(sentence).toContain(said);
    expect(sentence).toEndWith(".");
  });

  test("all problems are reported together", () => {
    const config = readConfig({ POSTWARDEN_PORT: "x", POSTWARDEN_SMTP_PORT: "y", POSTWARDEN_NOTHING: "z" });
    expect(config.ok ? [] : config.error).toHaveLength(3);
  });

  test("a value that was refused is not repeated where it may be a secret", () => {
    const config = readOne("BASE_URL", "https://user:hunter2@example.com");
    expect(JSON.stringify(config)).not.toContain("hunter2");
    expect(JSON.stringify(readOne("METRICS_TOKEN", "hunter2"))).not.toContain("hunter2");
  });
});

describe("a name that does not exist is refused, with the one that is near", () => {
  test.each([
    ["DATADIR", "DATA_DIR"],
    ["PROT", "PORT"],
    ["LOGLEVEL", "LOG_LEVEL"],
    ["DNS_SERVER", "DNS_SERVERS"],
    ["GREYLIST_RETRIES", "GREYLIST_RETRIES_S"],
    ["MAX_CONNECTION", "MAX_CONNECTIONS"],
    ["MAX_CONNECTIONS_PER_HOSTS", "MAX_CONNECTIONS_PER_HOST"],
    ["port", "PORT"],
    ["BACKOFFICE_COLOUR", null],
    ["constructor", null],
    ["__proto__", null],
    ["", null],
  ])("POSTWARDEN_%s", (name, nearest) => {
    const config = readOne(name, "x");
    expect(config.ok ? [] : config.error).toEqual([
      nearest === null
        ? `POSTWARDEN_${name}: Unknown setting. \`postwarden config\` lists all settings.`
        : `POSTWARDEN_${name}: Unknown setting. Did you mean POSTWARDEN_${nearest}?`,
    ]);
  });
});

describe("the settings in force", () => {
  const config = readConfig({
    POSTWARDEN_SOCKS_PROXIES: "socks5://user:hunter2@192.0.2.9:1080",
    POSTWARDEN_TLS_CERT: "/c.pem",
    POSTWARDEN_TLS_KEY: "/k.pem",
    POSTWARDEN_REPORT_TLS_CERT: "/c.pem",
    POSTWARDEN_REPORT_TLS_KEY: "/k.pem",
  });
  if (!config.ok) throw new Error(config.error.join("\n"));
  const shown = settingsInForce(config.value);

  test("are shown under the names by which they are set", () => {
    const refused = readConfig(Object.fromEntries(Object.keys(shown).map((name) => [name, "~"])));
    expect(JSON.stringify(refused)).not.toContain("Unknown setting");
    expect(shown).toMatchObject({ POSTWARDEN_PORT: 8080, POSTWARDEN_MAIL_FROM: "<>", POSTWARDEN_TLS_CERT: "/c.pem" });
  });

  test("are named correctly in the README and the guides", async () => {
    const manual = new URL("docs/manual/", import.meta.url).pathname;
    const guides = [...new Glob("*.md").scanSync(manual)].map((name) => `${manual}${name}`);
    expect(guides.length).toBeGreaterThan(10);
    const named = new Set<string>();
    const clients: readonly string[] = Object.values(CLIENT_VARIABLES);
    for (const path of [new URL("../../README.md", import.meta.url).pathname, ...guides])
      for (const [name] of (await Bun.file(path).text()).matchAll(/POSTWARDEN_[A-Z_]+/g)) named.add(name);
    expect(named.size).toBeGreaterThan(30);
    expect([...named].filter((name) => !Object.hasOwn(shown, name) && !clients.includes(name))).toEqual([]);
  });

  test("are none where only variables of clients are", () => {
    const environment = { POSTWARDEN_URL: "https://x.example", POSTWARDEN_API_KEY: "x" };
    expect([readConfig(environment).ok, hasSettings(environment)]).toEqual([true, false]);
    expect([readConfig({ POSTWARDEN_URLS: "x" }).ok, hasSettings({ POSTWARDEN_PORT: "1" })]).toEqual([false, true]);
  });

  test("are shown without passwords", () => {
    expect(JSON.stringify(shown)).toContain("192.0.2.9");
    expect(JSON.stringify(shown)).not.toContain("hunter2");
  });
});
