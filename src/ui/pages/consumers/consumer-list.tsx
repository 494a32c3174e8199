// The list of consumers, of which there may be a hundred thousand: then the gateway searches; edits nothing.
import { Alert, Badge, Group, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useResourceList } from "../../api/queries.ts";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { useUrlState } from "../../parts/url-state.ts";

/** More than these are not loaded at once. */
const MAX_SHOWN = 200;

export function ConsumerList() {
  const { filters, isCut } = useSearched();
  return (
    <ResourceTable
      resource="consumers"
      page="consumers"
      title="Consumers"
      text="Who uses the proxied APIs: people and programs with credentials."
      filters={filters}
      notice={
        isCut && (
          <Alert color="blue" mb="sm" p="xs">
            These are the first {MAX_SHOWN}. Search by name, other id or description to find the
            others.
          </Alert>
        )
      }
      columns={[
        { title: "Groups", render: ({ groups }) => <Groups groups={groups} /> },
        {
          title: "Other id",
          render: ({ custom_id: other }) => (
            <Text size="sm" className="mono" style={{ overflowWrap: "anywhere" }}>
              {other ?? ""}
            </Text>
          ),
        },
      ]}
      empty={{
        title: "No consumers yet",
        text: "Create one for each person or program that gets a key. Then put a plugin such as key-auth on a route, which asks for it.",
      }}
    />
  );
}

/** While all fit, the page searches; else the gateway does. What is shown stays until the answer is there. */
function useSearched() {
  const [question] = useUrlState("q");
  const [asked] = useDebouncedValue(question.trim(), 250);
  const all = useResourceList("consumers", { limit: MAX_SHOWN });
  const isCut = (all.data?.length ?? 0) >= MAX_SHOWN;
  // The gateway looks for one text, the page for several words.
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

const longestOf = (question: string): string =>
  question.split(/\s+/).toSorted((one, other) => other.length - one.length)[0] ?? "";

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
