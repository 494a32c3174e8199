// DNS providers for the DNS challenge: the list, and which form to open.
import { Text } from "@mantine/core";
import { resourcePage } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { ProviderForm, useProviderTypes } from "./provider-form.tsx";

export default resourcePage("dns-providers", ProviderList, ProviderForm);

function ProviderList() {
  return (
    <ResourceTable
      resource="dns-providers"
      page="dns-providers"
      title="DNS providers"
      text="DNS APIs for the DNS challenge, which wildcard certificates require."
      columns={[
        {
          title: "Provider",
          sortBy: ({ type }) => type,
          render: ({ type }) => <Title type={type} />,
        },
        {
          title: "Zones",
          sortBy: ({ zones }) => zones[0] ?? null,
          render: ({ zones }) =>
            zones.length > 0 ? (
              zones.join(", ")
            ) : (
              <Text size="sm" c="dimmed">
                automatic
              </Text>
            ),
        },
      ]}
      empty={{
        title: "No providers yet",
        text: "Required for wildcard certificates and for names that are not reachable on port 80. Choose the provider of your zone and enter an API token.",
      }}
    />
  );
}

function Title({ type }: { readonly type: string }) {
  return useProviderTypes().find((one) => one.type === type)?.title ?? type;
}
