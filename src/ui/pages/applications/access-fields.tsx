// The client networks that may use an application; sends nothing.
import { Radio, Stack, Switch } from "@mantine/core";
import { ListField } from "../../parts/fields.tsx";
import type { ApplicationFieldsProps } from "./application-fields.tsx";

export function AccessFields({ form }: ApplicationFieldsProps) {
  const { access } = form.values;
  return (
    <Stack gap="sm">
      <Switch
        label="Access by network"
        description="Only clients from some networks; others get status 403"
        checked={access !== "public"}
        onChange={({ currentTarget: { checked } }) =>
          form.setFieldValue("access", checked ? "private" : "public")
        }
      />
      {access !== "public" && (
        <>
          <Radio.Group label="Networks" {...form.getInputProps("access")}>
            <Stack gap={8} mt={6}>
              <Radio
                value="private"
                label="Private networks"
                description="10.x, 192.168.x, 172.16–31.x, link-local addresses and this machine"
              />
              <Radio value="networks" label="Only the networks below" />
            </Stack>
          </Radio.Group>
          <ListField
            label={access === "private" ? "Also these networks" : "These networks"}
            description="Addresses and networks, each with Enter"
            placeholder="203.0.113.0/24"
            required={access === "networks"}
            {...form.getInputProps("networks")}
          />
        </>
      )}
    </Stack>
  );
}
