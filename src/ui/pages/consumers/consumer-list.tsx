// The list of consumers; with up to a hundred thousand, the gateway searches; edits nothing.
import { Alert, Badge, Group, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useResourceList } from "../../api/queries.ts";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { useUrlState } from "../../parts/url-state.ts";

/** Maximum number of loaded consumers. */
const MAX_SHOWN = 200;

export function ConsumerList() {
  const { filters, isCut } = useSearched();
  return (
    <ResourceTable
      resource="consumers"
      page="consumers"
      title="Consumers"
      text="Users and programs that call the proxied APIs."
      filters={filters}
      notice={
        isCut && (
          <Alert color="blue" mb="sm" p="xs">
            These are the first {MAX_SHOWN}. Search by name, custom ID or description to find the
            others.
          </Alert>
        )
      }
      columns={[
        {
          title: "Groups",
          sortBy: ({ groups }) => groups.join(" "),
          render: ({ groups }) => groups.length > 0 && <Groups groups={groups} />,
        },
        {
          title: "Custom ID",
          sortBy: ({ custom_id: id }) => id,
          render: ({ custom_id: other }) =>
            other !== null && (
              <span className="mono" style={{ overflowWrap: "anywhere" }}>
                {other}
              </span>
            ),
        },
      ]}
      empty={{
        title: "No consumers yet",
        text: "Create one for each user or program that gets a key. Then add an authentication plugin such as key-auth to a route.",
      }}
    />
  );
}

/** The page searches if all consumers are loaded, otherwise the gateway does. Rows stay until the response arrives. */
function useSearched() {
  const [query] = useUrlState("q");
  const [asked] = useDebouncedValue(query.trim(), 250);
  const all = useResourceList("consumers", { limit: MAX_SHOWN });
  const isCut = (all.data?.length ?? 0) >= MAX_SHOWN;
  // The gateway searches for one string, the page for several words.
  const q = isCut ? longestOf(asked) : "";
  const found = useResourceList(
    "consumers",
    q === "" ? { limit: MAX_SHOWN } : { limit: MAX_SHOWN, q },
  );
  const [shown, setShown] = useState("");
  if (found.data !== undefined && shown !== q) setShown(q);
  return {
    filters: shown === "" ? { limit: MAX_SHOWN } : { limit: MAX_SHOWN, q: shown },
    isCut: isCut && (found.data?.length ?? 0) >= MAX_SHOWN,
  };
}

const longestOf = (query: string): string =>
  query.split(/\s+/).toSorted((one, other) => other.length - one.length)[0] ?? "";

function Groups({ groups }: { readonly groups: readonly string[] }) {
  return (
    <Group gap={4}>
      {groups.slice(0, 3).map((group) => (
        <Badge key={group} variant="light" color="gray" tt="none" size="sm">
          {group}
        </Badge>
      ))}
      {groups.length > 3 && <Text size="xs">+{groups.length - 3}</Text>}
    </Group>
  );
}
