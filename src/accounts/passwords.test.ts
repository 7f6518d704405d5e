import { describe, expect, test } from "bun:test";
import { nextTurn } from "../foundation/base/clock.ts";
import { createTestClock } from "../testing/clock.ts";
import { PASSWORD_COSTS, passwordProblem, Passwords } from "./passwords.ts";

const EMAIL = "ada.lovelace@example.com";
const TOO_COMMON = "This is one of the most common passwords. Use several words, for example.";

describe("a password may be", () => {
  test.each([
    "four plain words here",
    "correct donkey battery staple",
    "xK9#mQ2$vL",
    "naïve café ☕ crème",
    "пароль из слов",
    "          a b c d",
    `${"x".repeat(50)}abcdefgh7`,
    "ab".repeat(3) + "cd".repeat(97),
    "passwords are hard",
    "2026 was a summer",
  ])("%j", (password) => {
    expect(passwordProblem(password, EMAIL)).toBeNull();
  });
});

describe("a password may not be", () => {
  test.each([
    ["", "A password must have at least 10 characters."],
    ["ninechars", "A password must have at least 10 characters."],
    // Three code points each.
    ["👩‍🚀".repeat(3), "A password must have at least 10 characters."],
    ["abc ".repeat(51), "A password must have at most 200 characters."],
    [EMAIL, "The password must not be the email address."],
    ["ADA.Lovelace@Example.com", "The password must not be the email address."],
    ["Ada.Lovelace", "The password must not be the email address."],
    ["broken \ud800 surrogate", "The password contains damaged characters."],
    ["password123", TOO_COMMON],
    ["Password2026!", TOO_COMMON],
    ["P@ssw0rd123", TOO_COMMON],
    ["passwordpassword", TOO_COMMON],
    ["Welcome2026", TOO_COMMON],
    ["qwertyuiop", TOO_COMMON],
    ["1q2w3e4r5t", TOO_COMMON],
    ["1234567890", TOO_COMMON],
    ["0987654321", TOO_COMMON],
    ["6789012345", TOO_COMMON],
    ["abcdefghijkl", TOO_COMMON],
    ["zyxwvutsrq", TOO_COMMON],
    ["aaaaaaaaaaaa", TOO_COMMON],
    ["abababababab", TOO_COMMON],
    ["postwarden1", TOO_COMMON],
    ["correcthorsebatterystaple", TOO_COMMON],
  ])("%j: %s", (password, message) => {
    expect(passwordProblem(password, EMAIL)).toBe(message);
  });
});

test("hostile passwords are judged in no time", () => {
  for (const password of [`${"ab".repeat(99)}c`, "a".repeat(100) + "!".repeat(100), "1".repeat(10_000_000)])
    expect(passwordProblem(password, EMAIL)?.length ?? 1).toBeGreaterThan(0);
});

describe("hashes", () => {
  const passwords = new Passwords(createTestClock(), PASSWORD_COSTS);

  test("are argon2id with a salt, and match their password however its characters are composed", async () => {
    const [one, two] = [await passwords.hash("crème brûlée", null), await passwords.hash("crème brûlée", null)];
    if (!one.ok || !two.ok) throw new Error("busy");
    expect(one.value).toStartWith("$argon2id$v=19$m=32768,t=2,p=1$");
    expect(two.value).not.toBe(one.value);
    expect(await passwords.verify("crème brûlée".normalize("NFD"), one.value, null)).toEqual({ ok: true, value: true });
    expect(await passwords.verify("creme brulee", one.value, null)).toEqual({ ok: true, value: false });
  });

  test("of unknown users cost the same, and match nothing", async () => {
    const hashed = await passwords.hash("something else", null);
    const costsOf = (hash: string) => hash.split("$").slice(0, 4);
    expect(costsOf(PASSWORD_COSTS.unknownUserHash)).toEqual(costsOf(hashed.ok ? hashed.value : ""));
    expect(await passwords.verify("something else", null, null)).toEqual({ ok: true, value: false });
  });

  test("match a password of 200 characters of two UTF-16 code units each", async () => {
    const longest = "🔑".repeat(200);
    const hashed = await passwords.hash(longest, null);
    expect(await passwords.verify(longest, hashed.ok ? hashed.value : "", null)).toEqual({ ok: true, value: true });
  });

  test("of a password of a million characters are not computed", async () => {
    const hashed = await passwords.hash("something", null);
    const hash = hashed.ok ? hashed.value : "";
    expect(await passwords.verify("x".repeat(1_000_000), hash, null)).toEqual({ ok: true, value: false });
  });

  test("are computed two at a time; one caller may have 160 of the 200 places to wait, and others the rest", async () => {
    const clock = createTestClock();
    const gate = new Passwords(clock, PASSWORD_COSTS);
    const refused: string[] = [];
    let settled = 0;
    const tryAs = (caller: string) =>
      gate.verify("x", null, caller).then(({ ok }) => {
        settled++;
        if (!ok) refused.push(caller);
      });
    const tried = Array.from({ length: 300 }, () => tryAs("acme"));
    const others = Array.from({ length: 20 }, (_, n) => tryAs(`other ${n}`));
    // Refusals need no hash: they are there when the first hash is.
    await nextTurn();
    expect(refused.filter((caller) => caller === "acme")).toHaveLength(300 - 2 - 160);
    expect(refused.filter((caller) => caller !== "acme")).toHaveLength(0);
    await clock.advance(10_000);
    await Promise.all([...tried, ...others]);
    expect(settled).toBe(320);
  });

  test("of another caller come after one of each that waits, not after all", async () => {
    const gate = new Passwords(createTestClock(), PASSWORD_COSTS);
    const order: string[] = [];
    const tryAs = (caller: string | null) => gate.verify("x", null, caller).then(() => void order.push(caller ?? ""));
    const flood = Array.from({ length: 20 }, () => tryAs("2001:db8::/48"));
    await tryAs("192.0.2.0/24");
    // The second place goes on with the others meanwhile.
    expect(order.length).toBeLessThan(15);
    await Promise.all(flood);
    expect(order).toHaveLength(21);
  }, 60_000);

  test("that take more than ten seconds are given up, and what still waits is not begun", async () => {
    const clock = createTestClock();
    const slow = new Passwords(clock, PASSWORD_COSTS);
    const tried = Array.from({ length: 6 }, () => slow.verify("x", null, null));
    await clock.advance(10_000);
    expect(await Promise.all(tried)).toEqual(Array.from({ length: 6 }, () => ({ ok: false, error: "busy" })));
    expect((await slow.verify("x", null, null)).ok).toBe(true);
  });
});
