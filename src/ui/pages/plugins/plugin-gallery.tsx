// The gallery of plugins, by purpose; configures nothing.
import {
  Badge,
  Card,
  CloseButton,
  Group,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useRef } from "react";
import { Link, useSearchParams } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import { pagePath } from "../../page-path.ts";
import { EmptyState } from "../../parts/empty-state.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { hasWords } from "../../parts/list-filter.ts";
import { HelpText, PageHead } from "../../parts/page-layout.tsx";
import { useShortcut } from "../../parts/shortcut.ts";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { useUrlState } from "../../parts/url-state.ts";
import { usePluginSchemas } from "./plugin-schemas.ts";
import { type PluginSchema, purposes } from "./plugin-values.ts";

export function PluginGallery() {
  const schemas = usePluginSchemas();
  return (
    <>
      <PageHead
        title="Add a plugin"
        text="Choose a plugin. The scope is the next step."
        parent={{ href: pagePath("plugins"), label: "Plugins" }}
      />
      {schemas.isPending && <RowsSkeleton />}
      {schemas.data === undefined && !schemas.isPending && (
        <ErrorPanel error={schemas.error} onRetry={() => schemas.refetch()} />
      )}
      {schemas.data !== undefined && <Gallery all={schemas.data.value} />}
    </>
  );
}

function Gallery({ all }: { readonly all: readonly PluginSchema[] }) {
  const [query, setQuery] = useUrlState("q");
  const [group, setGroup] = useUrlState("for");
  const search = useRef<HTMLInputElement>(null);
  useShortcut("/", () => search.current?.focus());
  const counts = useCounts();
  const fits = (each: PluginSchema) =>
    (group === "" || each.group === group) &&
    hasWords(`${each.name} ${each.summary} ${each.group}`.toLowerCase(), query.trim());
  const found = all.filter(fits);
  return (
    <Stack gap="lg">
      <Group gap="sm">
        <TextInput
          ref={search}
          type="search"
          aria-label="Search plugins"
          placeholder="Search: keys, cache, headers…"
          leftSection={<IconSearch size={16} />}
          rightSection={
            query !== "" && (
              <CloseButton size="sm" aria-label="Clear the search" onClick={() => setQuery("")} />
            )
          }
          value={query}
          onChange={({ currentTarget: { value } }) => setQuery(value)}
          style={{ flex: "1 1 14rem", maxWidth: "26rem" }}
        />
        <SegmentedControl
          className="purposes"
          aria-label="Category"
          value={group}
          onChange={setGroup}
          data={[
            { value: "", label: "All" },
            ...purposes.map(({ group: value, title: label }) => ({ value, label })),
          ]}
        />
      </Group>
      {found.length === 0 && (
        <EmptyState title="No matches" text="Try other words, or another category." />
      )}
      {purposes.map(({ group: purpose, title, text }) => {
        const own = found.filter((each) => each.group === purpose);
        if (own.length === 0) return null;
        return (
          <section key={purpose} aria-label={title}>
            <Title order={2} size="h4">
              {title}
            </Title>
            <HelpText>{text}</HelpText>
            <SimpleGrid cols={{ base: 1, xs: 2, lg: 3 }} spacing="sm" mt="xs">
              {own.map((each) => (
                <Choice key={each.name} schema={each} count={counts.get(each.name) ?? 0} />
              ))}
            </SimpleGrid>
          </section>
        );
      })}
    </Stack>
  );
}

/** The number of instances per plugin. */
function useCounts(): ReadonlyMap<string, number> {
  const { data = [] } = useResourceList("plugins");
  const counts = new Map<string, number>();
  for (const { name } of data) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function Choice({ schema, count }: { readonly schema: PluginSchema; readonly count: number }) {
  const [search] = useSearchParams();
  const parameters = new URLSearchParams({ plugin: schema.name });
  // The scope that another page passes as `?route_id=…`.
  for (const [name, value] of search) if (name.endsWith("_id")) parameters.set(name, value);
  return (
    <Card
      withBorder
      component={Link}
      href={`${pagePath("plugins", "new")}?${parameters.toString()}`}
      p="sm"
      className="choice"
    >
      <Group gap={6} justify="space-between" wrap="nowrap" align="flex-start">
        <Text fw={600} size="sm" style={{ overflowWrap: "anywhere" }}>
          {schema.name}
        </Text>
        <Group gap={4} wrap="nowrap">
          {count > 0 && (
            <Badge size="xs" variant="light" tt="none">
              {count} in use
            </Badge>
          )}
          {schema.source === "directory" && (
            <Badge size="xs" variant="light" color="teal" tt="none">
              directory
            </Badge>
          )}
          {schema.needs_admin && (
            <Badge size="xs" variant="light" color="gray" tt="none">
              admins
            </Badge>
          )}
        </Group>
      </Group>
      <HelpText>{schema.summary}</HelpText>
    </Card>
  );
}
