// All tables as exports of one module, which is where drizzle-kit looks for them.
const { collectionTables, ...tables } = require("../src/store/schema.ts");

module.exports = { ...tables, ...collectionTables };
