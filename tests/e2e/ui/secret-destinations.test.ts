// Where a secret is sent, in a browser: an editor who changes it sees at the secret's field that it must be entered again.
import { expect } from "bun:test";
import type { Locator } from "playwright-core";
import { checkAccessible, useUi, type UiPage } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi({ workers: 1 });

let editor: UiPage;
const ids: Record<string, string> = {};
const HINT = /To change their destination, enter them\s+again/;
const AGAIN = /must be sent again, because its destination changes/;

beforeAll(async () => {
  const make = async (path: string, name: string, body: object) => {
    ids[name] = (await scene.gateway.ok("POST", `/api/v1${path}`, body)).id;
  };
  const issuer = { issuer: "https://id.example.com", client_id: "a", client_secret: "hush" };
  await make("/plugins", "oidc", { name: "oidc", enabled: false, config: issuer });
  const collector = { endpoint: "http://127.0.0.1:9", headers: { "X-Token": "hush" } };
  await make("/plugins", "tracing", { name: "otel-tracing", enabled: false, config: collector });
  await make("/alerts", "mail", {
    name: "mail",
    type: "smtp",
    events: ["overload"],
    enabled: false,
    config: {
      host: "mail.example.com",
      username: "u",
      password: "hush",
      from: "a@a.example",
      to: ["b@b.example"],
    },
  });
  await make("/dns-providers", "dns", {
    name: "dns",
    type: "webhook",
    config: { url: "https://dns.example.com", token: "hush" },
  });
  await scene.createPeople();
  editor = await scene.openAs("editor", { expects: [403] });
});

const open = async (path: string) => {
  await editor.page.goto(`${scene.gateway.admin}/ui/${path}`);
  await editor.page.getByText(HINT).first().waitFor();
  return editor.page;
};
/** Waits until a field for a secret shows what is wrong with it. */
const showsError = (field: Locator) =>
  editor.page.locator(".mantine-PasswordInput-root", { has: field }).getByText(AGAIN).waitFor();
const save = () => editor.page.getByRole("button", { name: "Save", exact: true }).click();

test("of a plugin: at the field of its secret, without a stored one to choose", async () => {
  const page = await open(`plugins/${ids["oidc"]}`);
  expect(await page.getByRole("button", { name: "Use a stored secret" }).count()).toBe(0);
  await page.getByLabel("Issuer").fill("https://elsewhere.example.com");
  await save();
  const field = page.getByRole("textbox", { name: "Client secret" });
  await showsError(field);
  expect(await checkAccessible(page)).toEqual([]);
  await field.fill("hush again");
  await save();
  await page.getByText("Plugin oidc saved").waitFor();
});

test("of a plugin whose stored headers are hidden: with the name of the header", async () => {
  const page = await open(`plugins/${ids["tracing"]}`);
  await page.getByLabel("Endpoint").fill("http://127.0.0.1:10");
  await save();
  await page.getByText(/^X-Token: must be sent again/).waitFor();
});

test("of an alert", async () => {
  const page = await open(`alerts/${ids["mail"]}`);
  await page.getByLabel("Mail server").fill("elsewhere.example.com");
  await save();
  const field = page.getByRole("textbox", { name: "Password" });
  await showsError(field);
  await field.fill("hush again");
  await save();
  await page.getByText("Alert mail saved").waitFor();
});

test("of a DNS provider", async () => {
  const page = await open(`dns-providers/${ids["dns"]}`);
  await page.getByLabel("Address").fill("https://elsewhere.example.com");
  await save();
  const field = page.getByRole("textbox", { name: "Token" });
  await showsError(field);
  await field.fill("hush again");
  await save();
  await page.getByText("DNS provider dns saved").waitFor();
});

test("an admin sees no such error, and may omit the secret", async () => {
  const { page, close } = await scene.openAs("admin", {
    path: `/ui/dns-providers/${ids["dns"]}`,
  });
  await page.getByLabel("Address").fill("https://third.example.com");
  expect(await page.getByText(HINT).count()).toBe(0);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("DNS provider dns saved").waitFor();
  await close();
  expect(editor.complaints).toEqual([]);
});
