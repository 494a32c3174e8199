// The form of a route, with its plugins, its cache and a test.
import { Alert, Button } from "@mantine/core";
import { IconTestPipe } from "@tabler/icons-react";
import { Link } from "wouter";
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { hostsOf } from "../../parts/lenient-url.ts";
import { ObjectForm } from "../../parts/object-form.tsx";
import { PathFields } from "./path-fields.tsx";
import { RouteCache } from "./route-cache.tsx";
import { RouteConnections } from "./route-connections.tsx";
import { RoutePlugins } from "./route-plugins.tsx";
import { exampleUrl } from "./route-text.ts";

const schema = formSchemaOf("routes");
const overrides = { paths: PathFields };

export const RouteForm = (start: FormStart<Read<"routes">>) => (
  <ObjectForm
    resource="routes"
    schema={schema}
    start={start}
    text="Match conditions and the service that gets the requests."
    overrides={overrides}
    onChange={(name, value, form) => {
      const pasted = name === "hosts" ? hostsOf(value as readonly string[]) : null;
      if (pasted === null) return;
      const { paths } = form.values as MatchValues;
      form.setFieldValue("hosts", pasted.hosts);
      const added = pasted.paths.map((path) => ({ type: "prefix", value: path }));
      form.setFieldValue("paths", [...paths, ...added]);
    }}
    actions={(route) => (
      <Button
        variant="default"
        component={Link}
        href={`${pagePath("routes", "test")}?url=${encodeURIComponent(exampleUrl(route))}`}
        leftSection={<IconTestPipe size={16} />}
      >
        Test a request
      </Button>
    )}
    before={(route) => (
      <>
        <RoutePlugins route={route} />
        <RouteCache route={route} />
        <RouteConnections route={route} />
      </>
    )}
    after={({ form }) => ({ match: isCatchAll(form.values as MatchValues) && <CatchAllWarning /> })}
  />
);

type MatchValues = Pick<Read<"routes">, "hosts" | "paths" | "grpc_methods">;

const isCatchAll = ({ hosts, paths, grpc_methods: methods }: MatchValues): boolean =>
  hosts.length + methods.length === 0 &&
  paths.every((path) => typeof path !== "string" && (path.value ?? "") === "");

const CatchAllWarning = () => (
  <Alert color="yellow" title="Catch-all route">
    Without a host and a path, the route matches every request that no other route matches. Set at
    least a host unless you intend this.
  </Alert>
);
