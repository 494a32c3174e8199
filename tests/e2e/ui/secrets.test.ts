// Secrets in a browser: write-only, chosen by name, replaced in one place, with their users.
import { expect } from "bun:test";
import { eventually } from "../../support/poll.ts";
import {
  checkAccessible,
  isQuiet,
  screenshots,
  useUi,
  type UiPage,
} from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi({ workers: 1 });

let admin: UiPage;

beforeAll(async () => {
  await scene.createPeople();
  admin = await scene.openAs("admin", { path: "/ui/secrets", expects: [409] });
});

/** Whether the tab's storage contains a text. */
const isKept = async (text: string) => {
  const stores = "JSON.stringify([{...sessionStorage}, {...localStorage}])";
  return (await admin.page.evaluate<string>(stores)).includes(text);
};

/** Whether the page or the tab's storage contains a text. */
const remains = async (text: string) =>
  (await isKept(text)) || (await admin.page.content()).includes(text);

test("a secret is write-only", async () => {
  const { page, complaints } = admin;
  await page.getByText("No secrets yet").waitFor();
  await page.getByRole("link", { name: "Create the first secret" }).click();
  await page.getByLabel("Name", { exact: false }).first().fill("idp client");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Value is required").waitFor();
  await page.locator('input[type="password"]').fill("hush hush hush");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Secret idp client created").waitFor();
  await page.getByLabel("New value").first().waitFor();
  expect(await page.locator('input[type="password"]').inputValue()).toBe("");
  expect(await remains("hush hush hush")).toBe(false);
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test("the form of a plugin selects a secret by name, and its page lists its users", async () => {
  const { page, complaints } = admin;
  await page.goto(`${scene.gateway.admin}/ui/plugins/new?plugin=oidc`);
  await page.getByLabel("Issuer").fill("https://id.example.com");
  await page.getByLabel("Client ID").fill("gateway");
  await page.getByRole("button", { name: "Use a stored secret" }).click();
  await page.getByRole("combobox", { name: "Client secret" }).click();
  await page.getByRole("option", { name: "idp client" }).click();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Plugin oidc created").waitFor();
  await page.waitForURL(/plugins\/[0-9a-f-]{36}$/);
  const path = `${scene.gateway.admin}/api/v1${new URL(page.url()).pathname.slice(3)}`;
  const { config } = (await (await page.request.get(path)).json()) as {
    readonly config: { readonly client_secret: unknown };
  };
  expect(config.client_secret).toEqual({ $secret: "idp client" });

  await page.goto(`${scene.gateway.admin}/ui/secrets`);
  await page.getByText("plugin oidc").waitFor();
  await screenshots(page, "secrets");
  await page.getByRole("link", { name: "idp client" }).click();
  await page.getByRole("link", { name: "plugin oidc" }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test("its value is replaced in one place, and a secret in use is not deleted", async () => {
  const { page, complaints } = admin;
  await page.locator('input[type="password"]').fill("another one entirely");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Secret idp client saved").waitFor();
  await page
    .getByText(/Live on \d+ workers?, revision \d+/)
    .last()
    .waitFor();
  expect(await remains("another one entirely")).toBe(false);
  await page.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/is used by .*oidc/).waitFor();
  expect(await dialog.getByRole("button", { name: "Delete" }).isDisabled()).toBe(true);
  await dialog.getByRole("button", { name: "Cancel" }).click();
  expect(complaints).toEqual([]);
});

test("a secret in a plugin's form is not stored in the tab, and stays unchanged while its field is empty", async () => {
  const { page, complaints } = admin;
  await page.goto(`${scene.gateway.admin}/ui/plugins/new?plugin=ldap-auth`);
  await page.getByRole("button", { name: "Fill in an example" }).click();
  await page.locator('input[type="password"]').fill("of the directory");
  // The draft contains only the other fields.
  await page.getByRole("button", { name: /^Name and priority/ }).click();
  await page.getByLabel("Label").fill("staff");
  await eventually(() => isKept("staff"));
  expect(await isKept("of the directory")).toBe(false);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Plugin staff created").waitFor();
  await page.waitForURL(/plugins\/[0-9a-f-]{36}$/);
  await page.reload();
  await isQuiet(page);
  await page.getByPlaceholder("Unchanged; type to replace it").waitFor();
  await page.getByLabel("Label").fill("people");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Plugin people saved").waitFor();
  expect(complaints).toEqual([]);
});
