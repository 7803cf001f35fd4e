// Sums of a chain, and of the chains before it.
//@include zeros T=VEC X=acc R=MR C=NV
//@include zeros T=VEC X=out R=MR C=NV
