// Routes: which requests go to which service; the list, and which form or test to open.
import { Button, Menu } from "@mantine/core";
import { IconTestPipe } from "@tabler/icons-react";
import { useCallback, useMemo } from "react";
import { Link } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ResourceLoader } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { StatusDot } from "../../parts/status.tsx";
import type { PageProps } from "../../pages.ts";
import { RouteForm } from "./route-form.tsx";
import { conditionText, exampleUrl, matchText } from "./route-text.ts";
import { TestPage } from "./test-page.tsx";

type Route = Schemas["Route"];

export default function RoutesPage({ id }: PageProps) {
  if (id === null) return <RouteList />;
  if (id === "test") return <TestPage />;
  return (
    <ResourceLoader resource="routes" id={id}>
      {(start) => <RouteForm key={id} {...start} />}
    </ResourceLoader>
  );
}

const test = pagePath("routes", "test");

function RouteList() {
  const services = useResourceList("services");
  const names = useMemo(
    () => new Map(services.data?.map(({ id, name }) => [id, name])),
    [services.data],
  );
  const searchText = useCallback(
    ({ service_id }: Route) => names.get(service_id ?? "") ?? "",
    [names],
  );
  return (
    <ResourceTable
      resource="routes"
      page="routes"
      title="Routes"
      text="Which requests go to which service."
      actions={
        <Button
          variant="default"
          component={Link}
          href={test}
          leftSection={<IconTestPipe size={16} />}
        >
          Test a request
        </Button>
      }
      columns={[
        {
          title: "Matches",
          sortBy: matchText,
          render: (route) => <MatchCell route={route} />,
          width: "minmax(0, 1.5fr)",
        },
        {
          title: "Service",
          sortBy: ({ service_id: id }) => names.get(id ?? "") ?? null,
          render: ({ service_id: id }) =>
            id === null ? (
              <span className="is-minor">none: plugins only</span>
            ) : (
              <Link className="row-link" href={pagePath("services", id)}>
                {names.get(id) ?? "…"}
              </Link>
            ),
        },
        {
          title: "Priority",
          sortBy: ({ priority }) => priority,
          render: ({ priority }) => priority,
          width: "5rem",
        },
      ]}
      searchText={searchText}
      states={[
        {
          value: "maintenance",
          label: "In maintenance",
          fits: (route) => route.maintenance !== null,
        },
      ]}
      menu={(route) => (
        <Menu.Item
          component={Link}
          href={`${test}?url=${encodeURIComponent(exampleUrl(route))}`}
          leftSection={<IconTestPipe size={16} />}
        >
          Test a request
        </Menu.Item>
      )}
      empty={{
        title: "No routes yet",
        text: "A route forwards requests for hosts and paths to a service. Create a service first, with the targets of your application.",
      }}
    />
  );
}

function MatchCell({ route }: { readonly route: Route }) {
  const conditions = conditionText(route);
  return (
    <div className="cell-line">
      <span className="mono">{matchText(route)}</span>
      {conditions !== "" && <span className="is-minor">{conditions}</span>}
      {route.maintenance !== null && <StatusDot state="maintenance" tone="warn" />}
    </div>
  );
}
