/** Signs in to the dashboard in the ways that handle secrets, also with wrong ones, and returns these. */
import { HttpClient } from "../dashboard/http-client.ts";

const EMAIL = "owner@example.com";
const PASSWORD = "four plain words 47";
const WRONG_PASSWORD = "four wrong words 48";

export interface UserSecrets {
  /** Never to be found in a log, and not in the database either. */
  readonly hidden: Readonly<Record<string, string>>;
  /** Stored as it is, because codes are checked with it. */
  readonly totpSecret: string;
}

const tokenOf = (setupUrl: string): string => setupUrl.split("/").at(-1) ?? "";

const totpSecretIn = (html: string): string => {
  const shown = /<code>((?:[A-Z2-7]{4} ){7}[A-Z2-7]{4})<\/code>/.exec(html)?.[1] ?? "";
  return shown.replaceAll(" ", "");
};

/** `links` are set-up URLs: the first one is used, the second one only looked at. */
export const useDashboard = async (url: string, links: readonly [string, string]): Promise<UserSecrets> => {
  const client = new HttpClient(url);
  const [used, unused] = links.map(tokenOf);
  const setup = `/setup/${used}`;
  await client.submit(setup, setup, { password: PASSWORD, repeat: "another one" });
  const done = await client.submit(setup, setup, { password: PASSWORD, repeat: PASSWORD });
  if (done.status !== 303) throw new Error(`the set-up link did not work: ${done.status}`);
  await client.get(setup);
  await client.get(`/setup/${unused}`);
  const sessionToken = client.cookie("pw_session") ?? "";
  const profile = "/settings/profile";
  await client.submit(profile, `${profile}/password`, {
    present: WRONG_PASSWORD,
    password: PASSWORD,
    repeat: PASSWORD,
  });
  await client.submit(profile, `${profile}/codes/enrol`, {});
  const totpSecret = totpSecretIn((await client.get(profile)).html);
  await client.submit(profile, `${profile}/codes/confirm`, { present: WRONG_PASSWORD, code: "123456" });
  const other = new HttpClient(url);
  await other.submit("/sign-in", "/sign-in", { email: EMAIL, password: WRONG_PASSWORD });
  await other.submit("/sign-in", "/sign-in", { email: EMAIL, password: PASSWORD });
  return {
    hidden: {
      ...{ "user's password": PASSWORD, "wrong password": WRONG_PASSWORD },
      ...{ "session token": sessionToken, "set-up token": used ?? "", "unused set-up token": unused ?? "" },
      "other session token": other.cookie("pw_session") ?? "",
    },
    totpSecret,
  };
};
