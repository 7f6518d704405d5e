/** Sessions for tests: signed in once over HTTP, used by as many browser contexts as necessary. */
import { HttpClient } from "./http-client.ts";

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

/** A client with a session; throws when the sign-in fails. */
export const signIn = async (url: string, { email, password }: Credentials): Promise<HttpClient> => {
  const client = new HttpClient(url);
  const page = await client.submit("/sign-in", "/sign-in", { email, password });
  if (page.status !== 303) throw new Error(`the sign-in of ${email} failed: ${page.status} ${page.html.slice(0, 500)}`);
  return client;
};
