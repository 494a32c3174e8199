// The advanced fields of single sign-on, folded; knows no provider.
import { Accordion, Select, Stack, TextInput } from "@mantine/core";
import { ListField } from "../../parts/fields.tsx";
import type { SsoFieldsProps } from "./client-fields.tsx";

export function AdvancedFields({ form }: SsoFieldsProps) {
  const hasError = ["scopes", "token_auth", "button_label"].some((name) => name in form.errors);
  return (
    <Accordion variant="contained" mb="md" {...(hasError ? { value: "more" } : {})}>
      <Accordion.Item value="more">
        <Accordion.Control>Advanced</Accordion.Control>
        <Accordion.Panel>
          <Stack>
            <TextInput
              label="Button text"
              description="On the sign-in page"
              maw={420}
              {...form.getInputProps("button_label")}
            />
            <ListField
              label="Scopes"
              description="OAuth scopes; some providers require one more for groups"
              suggestions={["openid", "email", "profile", "groups"]}
              {...form.getInputProps("scopes")}
            />
            <Select
              label="Client authentication"
              data={[
                {
                  value: "basic",
                  label: "Header (client_secret_basic), as most providers require",
                },
                { value: "post", label: "Body (client_secret_post)" },
              ]}
              allowDeselect={false}
              maw={420}
              {...form.getInputProps("token_auth")}
            />
          </Stack>
        </Accordion.Panel>
      </Accordion.Item>
    </Accordion>
  );
}
