import { expect, test } from "bun:test";
import { ownUserId, userNameOf } from "./os-user.ts";

const PASSWD =
  "root:x:0:0:root:/root:/bin/bash\npostwarden:x:997:997::/var/lib/postwarden:/usr/sbin/nologin\n:x:5:5::/:\n";

test.each([
  [0, "root"],
  [997, "postwarden"],
  [5, "user ID 5"],
  [99, "user ID 99"],
  [97, "user ID 97"],
])("the user with the id %p is %s", (id, name) => {
  expect(userNameOf(id, PASSWD)).toBe(name);
});

test("the user of this process has a name or a number", () => {
  expect(userNameOf(ownUserId())).toMatch(/^\S/);
});
