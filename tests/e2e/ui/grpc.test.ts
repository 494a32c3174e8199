// gRPC in the browser: a service with its health check, a route that needs an engine, the listener that gets one, the test page.
import { expect } from "bun:test";
import { quietPort } from "../../support/quiet-port.ts";
import { checkAccessible, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let listener: string;
const port = quietPort();

beforeAll(async () => {
  const made = { name: "calls", address: "127.0.0.1", port, engine: "bun" };
  for (const name of ["http", "https"])
    await scene.gateway.ok("PATCH", `/api/v1/listeners/${name}`, {
      engine: "bun",
      max_header_bytes: null,
    });
  listener = (await scene.gateway.ok("POST", "/api/v1/listeners", made)).id;
  await scene.createPeople();
});

test("a route of a gRPC service is refused until a listener has our own engine", async () => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/services/new",
    expects: [400],
  });
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("greeter");
  await page.getByRole("combobox", { name: "Protocol" }).click();
  await page.getByRole("option", { name: "gRPC without TLS" }).click();
  await page.getByText("gRPC needs a listener with the engine Sluice").waitFor();
  await page.getByRole("textbox", { name: "Host", exact: true }).fill("127.0.0.1");
  await page.getByRole("textbox", { name: "Port" }).fill("50051");
  await page.getByRole("button", { name: /^Health checks/ }).click();
  await page.getByRole("switch", { name: "Active health checks" }).click();
  await page.getByRole("combobox", { name: "Check type" }).click();
  await page.getByRole("option", { name: "gRPC health check", exact: true }).click();
  await page.getByRole("textbox", { name: "gRPC service to check" }).fill("helloworld.Greeter");
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "grpc-service");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Service greeter created").waitFor();

  await page.goto(`${scene.gateway.admin}/ui/routes/new`);
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("greeter");
  await page.getByRole("combobox", { name: "Service", exact: true }).click();
  await page.getByRole("option", { name: "greeter" }).click();
  const hosts = page.getByRole("combobox", { name: "Hosts" });
  await hosts.fill("calls.test");
  await hosts.press("Enter");
  await page.getByRole("button", { name: /^gRPC/ }).click();
  await page.getByRole("button", { name: "Add a gRPC method" }).click();
  await page.getByRole("textbox", { name: "gRPC methods: service 1" }).fill("helloworld.Greeter");
  await page.getByRole("textbox", { name: "gRPC methods: method 1" }).fill("SayHello");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText(/which no enabled listener with this route's hosts/).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "grpc-route");

  await page.goto(`${scene.gateway.admin}/ui/listeners/${listener}`);
  await page.getByRole("combobox", { name: "Engine" }).click();
  await page.getByRole("option", { name: /^Sluice/ }).click();
  await page.getByText("The listener is opened again").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "listener-engine");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Listener calls saved").waitFor();

  // The refused route is still there as a draft.
  await page.goto(`${scene.gateway.admin}/ui/routes/new`);
  await page.getByText("Draft restored").waitFor();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Route greeter created").waitFor();
  const url = `http://calls.test:${port}/helloworld.Greeter/SayHello`;
  await page.goto(
    `${scene.gateway.admin}/ui/routes/test?method=POST&url=${encodeURIComponent(url)}`,
  );
  await page.getByText("sluice: The listener has the gateway's own engine.").waitFor();
  await page.getByText("helloworld.Greeter/SayHello", { exact: true }).waitFor();
  await screenshots(page, "grpc-test");
  expect(complaints).toEqual([]);
  await close();
});
