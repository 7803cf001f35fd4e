// Of so many blocks that multiply a panel, those that ask for a part of the next one.
#define SPREAD_OF(blocks) (blocks >= 16 ? 16 : blocks >= 8 ? 8 : blocks >= 4 ? 4 : blocks >= 2 ? 2 : 1)
