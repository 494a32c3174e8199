// The routes to a service, with links to create one; changes nothing.
import { Anchor, Badge, Button, Group, Stack, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Link } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import { nameOf, type Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Can, Section } from "../../parts/page-layout.tsx";
import { matchText } from "../routes/route-text.ts";
import { isHttp } from "./service-state.ts";

/** More are found in the list of routes. */
const SHOWN = 8;

export function UsedBy({ service }: { readonly service: Read<"services"> }) {
  return isHttp(service.protocol) ? (
    <Routes service={service} />
  ) : (
    <StreamRoutes service={service} />
  );
}

interface RowData {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly enabled: boolean;
}

function Routes({ service }: { readonly service: Read<"services"> }) {
  const routes = useResourceList("routes", { service_id: service.id });
  const rows = routes.data?.map((route) => ({
    id: route.id,
    name: nameOf(route),
    text: matchText(route),
    enabled: route.enabled,
  }));
  return <Users service={service} page="routes" word="route" title="Routes" rows={rows} />;
}

function StreamRoutes({ service }: { readonly service: Read<"services"> }) {
  const routes = useResourceList("stream-routes", { service_id: service.id });
  const rows = routes.data?.map(({ id, name, enabled, protocol, listen_port, port_range }) => ({
    id,
    name,
    enabled,
    text: `${protocol} ${listen_port ?? port_range ?? ""}`,
  }));
  return (
    <Users
      service={service}
      rows={rows}
      page="stream-routes"
      word="stream route"
      title="Stream routes"
    />
  );
}

interface UsersProps {
  readonly service: Read<"services">;
  readonly page: string;
  readonly word: string;
  readonly title: string;
  readonly rows: readonly RowData[] | undefined;
}

function Users({ service, page, word, title, rows = [] }: UsersProps) {
  const more = rows.length - SHOWN;
  return (
    <Section
      title={title}
      text={`Routes to this service.`}
      actions={
        <Can needs="editor">
          <Button
            size="xs"
            variant="default"
            component={Link}
            href={`${pagePath(page, "new")}?service_id=${service.id}`}
            leftSection={<IconPlus size={14} />}
          >
            New {word}
          </Button>
        </Can>
      }
    >
      <Stack gap={6}>
        {rows.slice(0, SHOWN).map(({ id, name, text, enabled }) => (
          <Group key={id} gap="xs" align="baseline">
            <Anchor component={Link} href={pagePath(page, id)} size="sm" fw={600}>
              {name}
            </Anchor>
            <Text size="sm" className="mono" c="dimmed" style={{ overflowWrap: "anywhere" }}>
              {text}
            </Text>
            {!enabled && (
              <Badge size="xs" variant="light" color="gray" tt="none">
                off
              </Badge>
            )}
          </Group>
        ))}
        {more > 0 && (
          <Anchor component={Link} href={`${pagePath(page)}?q=${service.name}`} size="sm">
            and {more} more
          </Anchor>
        )}
        {rows.length === 0 && (
          <Text size="sm" c="dimmed">
            No traffic reaches it yet. Create a {word} that sends traffic to it.
          </Text>
        )}
      </Stack>
    </Section>
  );
}
