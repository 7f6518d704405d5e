/** The one browser of all test files, loaded before them. */
import { afterAll } from "bun:test";
import type { Browser } from "playwright-core";
import { axeProblems, COLOUR_RULES, launchBrowser, Person, type VisitOptions } from "../browser.ts";
import type { HttpClient } from "../http-client.ts";
import { facts, sessionOf, type UserName } from "./facts.ts";

let browser: Promise<Browser> | null = null;
const sessions = new Map<UserName, Promise<HttpClient>>();
const people: Person[] = [];

afterAll(async () => {
  await (await browser)?.close();
});

/** A visitor without a session, at the service of the story or at another one. */
export const visit = async (options: VisitOptions = {}, url = facts.url): Promise<Person> => {
  browser ??= launchBrowser();
  const person = await Person.open(await browser, url, options);
  people.push(person);
  return person;
};

/** One of the users, signed in. */
export const signedIn = async (name: UserName, options: VisitOptions = {}): Promise<Person> => {
  const session = sessions.get(name) ?? sessionOf(name);
  sessions.set(name, session);
  return visit({ ...options, cookies: (await session).cookies() });
};

/** Closes everybody's windows; what went wrong in them. For the end of each test. */
export const leave = async (): Promise<string[]> => {
  const left = people.splice(0);
  await Promise.all(left.map((person) => person.close()));
  return left.flatMap(({ problems }) => problems);
};

/** What is wrong with the page that is open: for axe in both schemes, what does not fit into a window, and hostile texts that became markup. */
export const problemsOf = async (person: Person, target: string): Promise<string[]> => {
  const { page } = person;
  const light = [...(await axeProblems(page)), ...(await person.misfits())];
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = (await axeProblems(page, COLOUR_RULES)).map((problem) => `dark: ${problem}`);
  const injected = await person.injected();
  await page.emulateMedia({ colorScheme: "light" });
  return [...light, ...dark, ...injected].map((problem) => `${target}: ${problem}`);
};
