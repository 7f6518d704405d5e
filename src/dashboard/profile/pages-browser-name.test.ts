import { expect, test } from "bun:test";
import { browserName } from "./pages.tsx";

const WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)";

test.each([
  ["Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0", "Firefox on Linux"],
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/130.0.0.0 Safari/537.36`, "Chrome on Windows"],
  [`Mozilla/5.0 (Windows NT 10.0) ${WEBKIT} Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0`, "Edge on Windows"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/17.0 Safari/605.1.15", "Safari on macOS"],
  ["Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Version/17.0 Mobile Safari/604.1", "Safari on iPhone"],
  ["Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) CriOS/130.0 Safari/604.1", "Chrome on iPhone"],
  [
    `Mozilla/5.0 (Linux; Android 14; SM-S901B) ${WEBKIT} SamsungBrowser/25.0 Chrome/121.0 Safari/537.36`,
    "Samsung Internet on Android",
  ],
  ["curl/8.5.0", "Unknown browser"],
  ["", "Unknown browser"],
])("%s is %s", (userAgent, name) => {
  expect(browserName(userAgent)).toBe(name);
});
