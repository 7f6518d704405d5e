import { expect, test } from "bun:test";
import { baseUrlOf, readConfig } from "../service/config.ts";
import { checkBaseUrl } from "./base-url-check.ts";

const look = (settings: Readonly<Record<string, string>>) => {
  const config = readConfig(
    Object.fromEntries(Object.entries(settings).map(([name, value]) => [`POSTWARDEN_${name}`, value])),
  );
  if (!config.ok) throw new Error(config.error.join(" "));
  return checkBaseUrl(config.value, baseUrlOf(config.value, config.value.port)).map(
    ({ state, message }) => `${state} ${message}`,
  );
};

const NOTIFY = { NOTIFY_SMTP_URL: "smtp://127.0.0.1:25", NOTIFY_FROM: "postwarden@example.com" };
const ADVICE = "Set POSTWARDEN_BASE_URL to the public URL, such as https://postwarden.example.com.";
const CLEAR =
  "warn The service listens on 0.0.0.0 without TLS, so API keys cross the network in clear text. Set POSTWARDEN_TLS_CERT and POSTWARDEN_TLS_KEY, or set POSTWARDEN_HOST=127.0.0.1 behind a reverse proxy.";

test.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
  [
    "loopback without alert mail",
    {},
    [
      "ok POSTWARDEN_BASE_URL is not set, so links point to http://127.0.0.1:8080, which only this machine can open; no alert mail is sent.",
    ],
  ],
  [
    "loopback with alert mail",
    NOTIFY,
    [
      `warn POSTWARDEN_BASE_URL is not set, so links point to http://127.0.0.1:8080, which only this machine can open: links in alert mail do not work. ${ADVICE}`,
    ],
  ],
  [
    "a loopback URL that was set",
    { ...NOTIFY, BASE_URL: "https://localhost" },
    [
      `warn Links point to https://localhost, which only this machine can open: links in alert mail do not work. ${ADVICE}`,
    ],
  ],
  ["a public URL", { ...NOTIFY, BASE_URL: "https://pw.example.com" }, ["ok Links point to https://pw.example.com."]],
  [
    "a URL without TLS",
    { BASE_URL: "http://pw.example.com" },
    [
      `warn Links point to http://pw.example.com, without TLS: API keys would cross the network in clear text. ${ADVICE}`,
    ],
  ],
  [
    "a private address",
    { BASE_URL: "https://10.0.0.5" },
    [`warn Links point to https://10.0.0.5, a private address: only your own network can open them. ${ADVICE}`],
  ],
  [
    "every address without TLS",
    { HOST: "0.0.0.0", BASE_URL: "https://pw.example.com" },
    ["ok Links point to https://pw.example.com.", CLEAR],
  ],
  [
    "every address with TLS",
    { HOST: "0.0.0.0", BASE_URL: "https://pw.example.com", TLS_CERT: "/c.pem", TLS_KEY: "/k.pem" },
    ["ok Links point to https://pw.example.com."],
  ],
])("base URL: %s", (_, settings, expected) => {
  expect(look(settings)).toEqual([...expected]);
});
