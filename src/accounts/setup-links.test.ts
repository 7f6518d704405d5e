import { expect, test } from "bun:test";
import { createApps } from "../testing/app.ts";

const start = createApps();
const DAY_MS = 24 * 60 * 60 * 1000;

test("a set-up link works for seven days and is explained for thirty more", async () => {
  const app = start();
  const { users, setupLinks } = app.service.accounts;
  const accountId = app.newAccount("acme", "scale");
  const invited = users.invite({ accountId, email: "ada@example.com", role: "member", isOperator: false }, null);
  if (!invited.ok) throw new Error(invited.error.message);
  const { token, expiresAtMs } = invited.value;
  const stateOf = () => {
    const found = setupLinks.find(token);
    return found.ok ? "open" : found.error.code;
  };
  expect(expiresAtMs - app.clock.nowMs()).toBe(7 * DAY_MS);
  app.clock.setWall(7 * DAY_MS - 1);
  expect(stateOf()).toBe("open");
  app.clock.setWall(1);
  expect(stateOf()).toBe("link_expired");
  app.clock.setWall(30 * DAY_MS - 1);
  expect([await setupLinks.purge(() => false), stateOf()]).toEqual([0, "link_expired"]);
  app.clock.setWall(2);
  expect([await setupLinks.purge(() => false), stateOf()]).toEqual([1, "link_invalid"]);
});
