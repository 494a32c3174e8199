// Adds the collection of contacts to a copy of the sources, as a developer does: four files, and what scripts generate from them.
import type { ScratchTree } from "./scratch-tree.ts";

const CONTACT = `// A contact: whom to ask about routes.
import { type Static, Type as t } from "@sinclair/typebox";
import { type Identity, labels, listOf, name } from "./fields.ts";
import { defineResource, refersTo } from "./resource.ts";

const contactInput = t.Object(
  {
    name: name("Unique name"),
    phone: t.String({
      maxLength: 64,
      default: "",
      description: "Telephone number",
      form: { example: "+49 30 901820" },
    }),
    route_ids: listOf(
      refersTo("routes", t.String({ minLength: 1 }), { isFilter: true }),
      "IDs or names of routes",
    ),
    ...labels,
  },
  { additionalProperties: false, title: "Contact" },
);

export type Contact = Readonly<Static<typeof contactInput>> & Identity;

export const contacts = defineResource<Contact>({
  word: "contact",
  input: contactInput,
  nameField: "name",
  since: 5,
  api: { tag: "Contacts", schema: "Contact", write: "admin" },
});
`;

const PAGE = `// Contacts: the list, and the form by the schema.
import { formSchemaOf } from "../../model/form-schema.ts" with { type: "macro" };
import type { Read } from "../api/resources.ts";
import { type FormStart, resourcePage } from "../parts/form-page.tsx";
import { ObjectForm } from "../parts/object-form.tsx";
import { ResourceTable } from "../parts/resource-table.tsx";

const schema = formSchemaOf("contacts");

export default resourcePage(
  "contacts",
  () => (
    <ResourceTable
      resource="contacts"
      page="contacts"
      title="Contacts"
      text="Whom to ask about routes."
      columns={[{ title: "Phone", sortBy: ({ phone }) => phone, render: ({ phone }) => phone }]}
      empty={{ title: "No contacts yet", text: "Add the people who look after routes." }}
    />
  ),
  (start: FormStart<Read<"contacts">>) => (
    <ObjectForm resource="contacts" schema={schema} start={start} text="Whom to ask." />
  ),
);
`;

export function addContacts(tree: ScratchTree): void {
  tree.add("src/model/contact.ts", CONTACT);
  tree.edit("src/model/gateway-config.ts", [
    [
      "import { credentials } from",
      'import { contacts } from "./contact.ts";\nimport { credentials } from',
    ],
    ["  secrets,\n};", "  secrets,\n  contacts,\n};"],
  ]);
  tree.add("src/ui/pages/contacts-page.tsx", PAGE);
  tree.edit("src/ui/pages.ts", [
    [
      '  {\n    path: "certificates",',
      `  {
    path: "contacts",
    title: "Contacts",
    group: "Traffic",
    icon: IconUsers,
    role: "viewer",
    load: () => import("./pages/contacts-page.tsx"),
  },
  {
    path: "certificates",`,
    ],
  ]);
  tree.run(process.execPath, "scripts/migration.ts", "contacts");
  tree.run(process.execPath, "scripts/api-types.ts");
}
