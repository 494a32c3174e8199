// Alerts in a browser: webhook and mail, test messages, delivery and message history.
import { expect } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { type SmtpServer, startSmtpServer } from "../../support/smtp-server.ts";
import { checkAccessible, screenshots, useUi } from "../../support/ui-scene.ts";

const { afterAll, beforeAll, scene, test } = useUi();

let hook: Bun.Server<undefined>;
let mail: SmtpServer;
let status = 200;
const received: { readonly body: string; readonly authorization: string | null }[] = [];

beforeAll(async () => {
  hook = scene.serve(async (request) => {
    const authorization = request.headers.get("authorization");
    received.push({ body: await request.text(), authorization });
    return new Response("thanks", { status });
  });
  mail = await startSmtpServer();
  await scene.gateway.ok("POST", "/api/v1/services", {
    name: "shop",
    targets: [{ host: "127.0.0.1", port: 9 }],
  });
  await scene.createPeople();
});
afterAll(async () => {
  mail?.stop();
});

test("a webhook is created from a preset, tested, and receives events", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    path: "/ui/alerts",
    expects: [400],
  });
  await page.getByRole("link", { name: "Create the first alert" }).click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("ops-chat");
  await page.getByRole("combobox", { name: "Preset" }).click();
  await page.getByRole("option", { name: /^Slack/ }).click();
  await page.getByLabel("URL").fill("chat.example.com");
  await page.getByText("Must start with http:// or https://").waitFor();
  // Only the gateway knows that this destination is forbidden.
  await page.getByLabel("URL").fill(scene.gateway.admin);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText(/management API itself/).waitFor();
  await page.getByLabel("URL").fill(`http://127.0.0.1:${hook.port}/canary-token`);
  await page.getByRole("button", { name: /^Advanced/ }).click();
  await page.getByRole("button", { name: "Add a header" }).click();
  await page.getByLabel("Headers: name 1").fill("Authorization");
  await page.getByRole("textbox", { name: "Headers: value 1" }).fill("Bearer canary-header");
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Alert ops-chat created").waitFor();

  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("Test delivered").waitFor();
  expect(received.at(-1)).toEqual({
    body: '{"text": "This is a test: A user has requested a test of this alert. Nothing is wrong."}',
    authorization: "Bearer canary-header",
  });
  status = 404;
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("Test not delivered").waitFor();
  await page.getByText(/rejects the message \(404\)/).waitFor();
  status = 200;

  const told = page.getByRole("region", { name: "Messages" });
  await told.getByText("Nothing yet.").waitFor();
  await page.evaluate(async () => {
    const [target] = await (await fetch("/api/v1/targets")).json();
    const headers = { "content-type": "application/json" };
    const init = { method: "PUT", headers, body: JSON.stringify({ state: "unhealthy" }) };
    await fetch(`/api/v1/targets/${target.id}/health`, init);
  });
  await told.getByText('Target 127.0.0.1:9 of service "shop" is down').waitFor();
  await told.getByText("firing", { exact: true }).waitFor();
  await told.getByText("delivered").first().waitFor();
  // No secret is on the page or in the tab's storage.
  await page.getByLabel("Description").fill("for the people on call");
  await eventually(() => page.evaluate(() => JSON.stringify(sessionStorage).includes("on call")));
  const kept = await page.evaluate(() => document.body.innerHTML + JSON.stringify(sessionStorage));
  expect(kept).not.toContain("canary");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Alert ops-chat saved").waitFor();
  // It still has its address.
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("Test delivered").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "alert");
  expect(complaints).toEqual([]);
  await close();
});

test("mail is validated while typing and sent to all recipients", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path: "/ui/alerts/new" });
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("mail");
  await page.getByRole("combobox", { name: "Delivery method" }).click();
  await page.getByRole("option", { name: /mail/i }).click();
  const to = page.getByRole("combobox", { name: "To" });
  for (const address of ["nobody", "ann@ops.example"]) {
    await to.fill(address);
    await to.press("Enter");
    if (address === "nobody") {
      await page.getByText("nobody must be an e-mail address").waitFor();
      await to.press("Backspace");
    }
  }
  await page.getByLabel("From").fill("gateway@ops.example");
  await page.getByLabel("Mail server").fill("127.0.0.1");
  await page.getByRole("textbox", { name: "Port" }).fill(String(mail.port));
  await page.getByRole("combobox", { name: "Encryption" }).click();
  await page.getByRole("option", { name: "None" }).click();
  await page.getByRole("checkbox", { name: /High error rate/ }).check();
  await page.getByRole("textbox", { name: "Percentage of responses" }).fill("10");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Alert mail created").waitFor();
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("Test delivered").waitFor();
  expect(mail.mails.at(-1)?.to).toEqual(["ann@ops.example"]);
  await page.goto(`${scene.gateway.admin}/ui/alerts`);
  const row = page.getByRole("row", { name: /mail/ });
  await row.getByText(/ann@ops\.example by 127\.0\.0\.1/).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "alerts");
  expect(complaints).toEqual([]);
  await close();
});

test("viewers see alerts and their messages, and can neither test nor change", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/alerts/ops-chat" });
  await page
    .getByRole("region", { name: "Messages" })
    .getByText("firing", { exact: true })
    .waitFor();
  expect(await page.getByRole("button", { name: /Send a test|Save|Delete/ }).count()).toBe(0);
  expect(await page.getByRole("textbox", { name: "Name", exact: true }).isDisabled()).toBe(true);
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
});
