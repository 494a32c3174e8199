// Secrets: write-only values that objects reference; the list, and which form to open.
import { Text } from "@mantine/core";
import { resourcePage } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { SecretForm } from "./secret-form.tsx";
import { useSecretUses } from "./secret-uses.ts";

export default resourcePage("secrets", SecretList, SecretForm);

function SecretList() {
  const usesOf = useSecretUses();
  return (
    <ResourceTable
      resource="secrets"
      page="secrets"
      title="Secrets"
      text="Passwords and keys that other objects reference by name. Values are write-only."
      columns={[
        {
          title: "Used by",
          sortBy: ({ name }) => usesOf(name).length,
          render: ({ name }) => {
            const uses = usesOf(name);
            return (
              <Text size="sm" {...(uses.length === 0 ? { c: "dimmed" } : {})}>
                {uses.length === 0 ? "nothing" : uses.map(({ label }) => label).join(", ")}
              </Text>
            );
          },
        },
        {
          title: "Changed",
          sortBy: ({ updated_at: at }) => at,
          width: "9rem",
          render: ({ updated_at: at }) => (
            <Text size="sm">
              <RelativeTime at={at} />
            </Text>
          ),
        },
      ]}
      canClone={false}
      empty={{
        title: "No secrets yet",
        text: "Store a password or key once and reference it by name. You then change it in one place.",
      }}
    />
  );
}
